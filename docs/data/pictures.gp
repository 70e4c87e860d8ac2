# SPDX-License-Identifier: BSD-3-Clause
# Draws limits.png and bits.png: gnuplot pictures.gp, in this directory. The numbers are rows of the
# files that the comments name.
set terminal pngcairo size 900,420 font "sans,11" background "white"
set grid lc rgb "#dddddd"
set key outside right top spacing 1.2

# Time / limit, 2 hosts, 8 bits: predicted-and-measured.csv (1 Gbit/s, two cores), gpu-one-call.csv
# (one rank with a GPU, one on the CPU). The limit is the encoded bytes at the link's payload rate;
# buckets had 2048 values in the first, 512 in the second.
limit(mib, gbit, bits) = mib * 1048576 * (bits / 32) / (gbit * 1e9 * 1448 / 1514 / 8) * 1e3
plain(mib, gbit) = mib * 1048576 / (gbit * 1e9 * 1448 / 1514 / 8) * 1e3
$one << END
1 2.15
16 35.4
64 140
END
$ten << END
1 0.66 0.89
4 1.70 4.32
16 7.55 21.8
64 32.2 95.1
256 105 330
1024 408 1411
END
$twentyfive << END
1 0.56 0.74
4 1.29 2.66
16 6.31 18.4
64 25.3 78.2
256 103 303
1024 426 1155
END
set output "limits.png"
set title "Time of a sum / least time that the link needs for its bytes, 2 hosts"
set xlabel "MiB of floats"
set logscale x 2
set yrange [0:7]
plot $one using 1:($2 / limit($1, 1, 8.03)) with linespoints lw 2 pt 7 lc 1 title "8 bits, 1 Gbit/s", \
     $ten using 1:($2 / limit($1, 10, 8.125)) with linespoints lw 2 pt 5 lc 2 title "8 bits, 10 Gbit/s", \
     $twentyfive using 1:($2 / limit($1, 25, 8.125)) with linespoints lw 2 pt 9 lc 3 title "8 bits, 25 Gbit/s", \
     $ten using 1:($3 / plain($1, 10)) with linespoints lw 1 dt 2 pt 4 lc 2 title "plain MPI, 10 Gbit/s", \
     $twentyfive using 1:($3 / plain($1, 25)) with linespoints lw 1 dt 2 pt 8 lc 3 \
       title "plain MPI, 25 Gbit/s"

# codecs-error-and-loss-at-the-same-bytes.csv: bits, vNMSE of an MLP, a CNN and a transformer.
$minmax << END
8.03 8.8e-05 2.5e-04 1.9e-04
6.03 1.3e-03 2.5e-03 3.0e-03
5.03 4.8e-03 6.7e-03 1.2e-02
4.03 1.6e-02 2.2e-02 4.6e-02
3.03 6.3e-02 8.2e-02 1.6e-01
2.03 2.6e-01 4.1e-01 5.2e-01
1.03 1.0e+00 1.1e+00 1.0e+00
END
$packed << END
8 1.7e-06 1.1e-08 9.7e-06
6 3.8e-05 6.4e-07 1.5e-04
5 1.8e-04 5.5e-06 6.1e-04
4 8.4e-04 4.4e-05 2.5e-03
3 4.0e-03 3.5e-04 9.9e-03
2 1.9e-02 3.1e-03 3.9e-02
1 7.7e-02 3.0e-02 1.6e-01
END
$short << END
8.13 3.3e-05 5.2e-05 8.3e-05
2.13 1.4e-01 2.1e-01 3.8e-01
END
set output "bits.png"
set title "Squared error of a sum / squared norm (vNMSE), gradients of step 100"
set xlabel "bits a value on the wire"
unset logscale x
set xrange [0.5:8.5]
set logscale y 10
set yrange [1e-8:2]
set format y "10^{%L}"
plot $minmax using 1:2 with linespoints lw 2 pt 7 lc 1 title "min-max, buckets of 2048: MLP", \
     $minmax using 1:3 with linespoints lw 1 dt 2 pt 7 lc 1 title "CNN", \
     $minmax using 1:4 with linespoints lw 1 dt 3 pt 7 lc 1 title "transformer", \
     $short using 1:2 with points pt 6 ps 1.5 lc 2 title "min-max, buckets of 512: MLP", \
     $packed using 1:2 with linespoints lw 2 pt 5 lc 3 title "packed: MLP", \
     $packed using 1:3 with linespoints lw 1 dt 2 pt 5 lc 3 title "CNN", \
     $packed using 1:4 with linespoints lw 1 dt 3 pt 5 lc 3 title "transformer"
