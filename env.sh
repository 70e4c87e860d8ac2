# t RANKS PYTHON SCRIPT OPTS -- : 
R=/work/wt-torch/build/tools/slimpi-run
OLD=/usr/bin/python3
NEW=/tmp/wt-torch/new/bin/python
F=/work/shared/found
t() { n=$1; shift; timeout -k 5 ${T:-60} mpiexec.mpich -n $n $R --torch --ranks-per-node 1 "$@"; echo "exit $?"; }
