#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# SLIMPI_MAX_ERROR: whatever the input, the measured error is under the bound, and the codec is not
# finer than it has to be.
. "$top_srcdir/tests/helper/scripts/mpi.sh"
. "$top_srcdir/tests/helper/scripts/rows.sh"
export SLIMPI_MIN_SIZE=0 SLIMPI_RANKS_PER_NODE=1 SLIMPI_BUCKET=512
printf '* * * bytegrad 4\n' >rules

# Inputs of every kind. The adversarial ones deceive an estimate: addends that cancel except in one
# quiet tile or bucket, heavy tails, spikes, mixed scales. No call is beyond the bound, some were
# repeated for it, and nothing became infinite in 16 bits. With large sums, which 16-bit floats
# cannot hold, an exchange is not repeated with these.
rows <<END
a tenth                        | 3   | max_error=1e-1                | max_error 60001
+ a hundredth                  | 3   | max_error=1e-2                | max_error 60001
a thousandth                   | 3   | max_error=1e-3                | max_error 60001
+ 1e-4                         | 3   | max_error=1e-4                | max_error 60001
1e-5                           | 3   | max_error=1e-5                | max_error 60001
two ranks, a tenth             | 2   | max_error=1e-1                | max_error 100000
two ranks, 2e-3                | 2   | max_error=2e-3                | max_error 100000
+ four ranks, a tenth          | 4   | max_error=1e-1                | max_error 100000
+ four ranks, 2e-3             | 4   | max_error=2e-3                | max_error 100000
one value                      | 3   | max_error=1e-2                | max_error 1
+ two values                   | 3   | max_error=1e-2                | max_error 2
+ 63 values                    | 3   | max_error=1e-2                | max_error 63
65 values                      | 3   | max_error=1e-2                | max_error 65
2049 values                    | 3   | max_error=1e-2                | max_error 2049
+ one bucket                   | 3   | max_error=2e-2 bucket=0       | max_error 70000
+ buckets of 64                | 3   | max_error=2e-2 bucket=64      | max_error 70000
+ buckets of 5000              | 3   | max_error=2e-2 bucket=5000    | max_error 70000
sharded                        | 5/2 | max_error=1e-2 hierarchy=sharded | max_error 50000
leaders                        | 5/2 | max_error=1e-2 hierarchy=leader | max_error 50000
+ flat                         | 5/2 | max_error=1e-2 hierarchy=flat | max_error 50000
qsgd                           | 3   | max_error=1e-2 algorithm=qsgd | max_error 50000
+ qsgd, a fifth                | 2   | max_error=2e-1 algorithm=qsgd | max_error 50000
adversarial                    | 3   | max_error=5e-2 bucket=64 | max_error 12000 adversarial 160 \
  | repeated>0; overflowed=0
adversarial, large sums        | 2   | max_error=5e-2 bucket=64 \
  | max_error 12000 adversarial 160 1e6 | repeated>0; overflowed=0
+ adversarial, one bucket      | 2   | max_error=1e-1 bucket=0       | max_error 8000 adversarial 64
+ adversarial, buckets of 2048 | 2   | max_error=1e-1 bucket=2048    | max_error 8000 adversarial 64
adversarial, qsgd              | 4   | max_error=1e-1 bucket=64 algorithm=qsgd \
  | max_error 8000 adversarial 48
adversarial, sharded           | 5/2 | max_error=5e-2 bucket=64 hierarchy=sharded \
  | max_error 8000 adversarial 40
adversarial, leaders           | 5/2 | max_error=5e-2 bucket=64 hierarchy=leader \
  | max_error 8000 adversarial 40
adversarial, rules             | 2   | max_error=1e-2 bucket=64 rules=$work/rules \
  | max_error 8000 adversarial 24
# Exact sums, whose error is the rounding of floats.
a bound that no codec keeps    | 3   | max_error=1e-9 | max_error 8000 adversarial 8 \
  | codecs.float32.calls=8
END

# The codec is not wasteful.
for ranks in 2 4; do
  tier='' values=$((2 * (ranks - 1) * 1000000)) # sent by all ranks
  [ $ranks = 2 ] || tier=+
  rows <<END
$tier $ranks ranks: 8 bits do | $ranks | max_error=1e-2 verify=1 | max_error 1000000 normal \
  | codecs.8.calls=1; error.max_rel_l2>0.005; error.max_rel_l2<=0.01; \
    bytes.sent<$((values * 12 / 10))
$tier $ranks ranks: 5 bits do | $ranks | max_error=1e-1 | max_error 1000000 normal \
  | codecs.5.calls=1; bytes.sent<$((values * 3 / 4))
END
done
rows <<END
12 bits do                               | 3 | max_error=1e-3 | max_error 100000 normal \
  | codecs.12.calls=1
16 bits do                               | 3 | max_error=5e-5 verify=1 | max_error 100000 normal \
  | codecs.16.calls=1
zeros                                    | 3 | max_error=1e-1 | max_error 100000 zeros \
  | codecs.1.calls=1
a large offset, of which the ranks learn | 3 | max_error=1e-5 | max_error 100000 offset 40 \
  | codecs.1.calls>=20
a bound that is not tight, the same      | 3 | max_error=1e-1 | max_error 100000 uniform 30 \
  | codecs.4.calls>=20
a half cancels                           | 3 | max_error=1e-1 \
  | max_error 100000 "partly cancelling" | codecs.12.calls=1
addends cancel: exact                    | 3 | max_error=1e-1 | max_error 100000 cancelling \
  | codecs.float32.calls=1
addends are opposite: exact              | 3 | max_error=1e-1 | max_error 100000 opposite \
  | codecs.float32.calls=1
16-bit floats cannot hold it             | 3 | max_error=1e-3 \
  | max_error 100000 "beyond 16-bit floats" | codecs.12.calls=1
# An infinity or a NaN leaves nothing to measure.
infinities and NaNs: exact               | 3 | max_error=1e-1 | max_error 1000 nonfinite \
  | codecs.float32.calls=1
# An option that cannot keep a bound of the error is refused.
fp16 is refused                          | 2 | max_error=1e-2 algorithm=fp16 | max_error 100 \
  | fails; err 1+ SLIMPI_MAX_ERROR cannot be combined with fp16. accepted: bytegrad, qsgd
error feedback is refused                | 2 | max_error=1e-2 error_feedback=1 | max_error 100 \
  | fails; err 1+ SLIMPI_ERROR_FEEDBACK=1 cannot be combined with SLIMPI_MAX_ERROR
END
