#!/usr/bin/env bash
# setup.sh <group>...: sees to it that what a group needs is there.
#   run       to install the package           test      to run its tests
#   ci        to check it as CRAN does         sanitize  to run it under valgrind
#   docs      to write man/ and NAMESPACE     site      to make the site
#   watch     to run the C code under libFuzzer and ThreadSanitizer
#   engines   to run on clusters of other kinds: SSH, MPI, mirai, Slurm
# Where apt is and we may use it, what is missing is installed; elsewhere one sentence names it.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)

packages=()
for group in "$@"; do
  case $group in
    run) packages+=(r-base-dev libgsl-dev) ;;
    test) packages+=(r-base-dev libgsl-dev r-cran-testthat r-cran-ggplot2 r-cran-posterior
      r-cran-knitr r-cran-rmarkdown r-cran-bridgesampling r-cran-bayestestr r-cran-loo pandoc
      r-cran-dbi r-cran-rsqlite r-cran-rpostgresql postgresql cran-nanoarrow r-cran-generics
      r-cran-mass r-cran-survival r-cran-tmb r-cran-rstan r-cran-rstantools r-cran-bh
      r-cran-dplyr r-cran-future r-cran-mclust r-cran-parameters r-cran-performance) ;;
    ci) packages+=(ccache clang libomp-dev qpdf tidy devscripts r-cran-roxygen2) ;;
    docs) packages+=(r-cran-roxygen2) ;;
    site) packages+=(r-cran-pkgdown r-cran-yaml r-cran-jsonlite pandoc r-cran-knitr
      r-cran-rmarkdown r-cran-dbi r-cran-rsqlite r-cran-mass r-cran-generics r-cran-ggplot2
      r-cran-posterior r-cran-bridgesampling r-cran-bayestestr) ;;
    sanitize) packages+=(valgrind libc6-dbg) ;;
    watch) packages+=(clang libomp-dev libclang-rt-dev) ;;
    engines) packages+=(openssh-server openmpi-bin libopenmpi-dev r-cran-rmpi r-cran-snow munge
      slurmctld slurmd slurm-client lib-nanonext lib-mirai) ;;
    *)
      echo "setup.sh: the group must be run, test, ci, sanitize, watch, docs, site or engines," \
        "not '$group'." >&2
      exit 2
      ;;
  esac
done

on_path() { command -v "$1" > /dev/null 2>&1; }

by_dpkg() {
  on_path dpkg-query &&
    [ "$(dpkg-query -W -f='${Status}' "$1" 2> /dev/null)" = "install ok installed" ]
}

# Debian writes the names of R packages in lower case. The names of packages that come from CRAN,
# because Debian does not have them, begin with cran-, or with lib- if they go into .lib.
has_r_package() {
  on_path Rscript && R_LIBS="$root/.lib" \
    Rscript -e "quit(status = !'$1' %in% tolower(.packages(all.available = TRUE)))" > /dev/null 2>&1
}

# The same thing may have come another way than through dpkg.
by_other_means() {
  case $1 in
    r-base-dev)
      on_path R && on_path make && on_path "$(R CMD config CC 2> /dev/null | cut -d' ' -f1)"
      ;;
    libgsl-dev) on_path "${GSL_CONFIG:-gsl-config}" ;;
    r-cran-*) has_r_package "${1#r-cran-}" ;;
    cran-*) has_r_package "${1#cran-}" ;;
    lib-*) has_r_package "${1#lib-}" ;;
    openmpi-bin) on_path mpirun ;;
    libopenmpi-dev) on_path mpicc && echo '#include <mpi.h>' | mpicc -E - > /dev/null 2>&1 ;;
    openssh-server) [ -x /usr/sbin/sshd ] ;;
    slurm-client) on_path sbatch ;;
    munge | slurmctld | slurmd) [ -x "/usr/sbin/${1/%munge/munged}" ] ;;
    postgresql) on_path initdb || compgen -G '/usr/lib/postgresql/*/bin/initdb' > /dev/null ;;
    libomp-dev) on_path clang && echo '#include <omp.h>' | clang -fopenmp -E - > /dev/null 2>&1 ;;
    devscripts) on_path checkbashisms ;;
    libc6-dbg) ! on_path dpkg-query ;;
    *) on_path "$1" ;;
  esac
}

common_name() {
  case $1 in
    r-base-dev) echo "R (4.1 or later) with a C compiler" ;;
    libgsl-dev) echo "GSL (2.5 or later)" ;;
    r-cran-*) echo "the R package ${1#r-cran-}" ;;
    cran-*) echo "the R package ${1#cran-} (from CRAN)" ;;
    openmpi-bin | libopenmpi-dev) echo "Open MPI" ;;
    openssh-server) echo "the server of OpenSSH" ;;
    libomp-dev) echo "OpenMP for clang" ;;
    devscripts) echo "checkbashisms" ;;
    libc6-dbg) echo "the C library's debugging symbols" ;;
    *) echo "$1" ;;
  esac
}

missing=() from_cran=() into_lib=()
for package in "${packages[@]}"; do
  by_dpkg "$package" || by_other_means "$package" || case $package in
    cran-*) from_cran+=("$package") ;;
    lib-*) into_lib+=("$package") ;;
    *) missing+=("$package") ;;
  esac
done
[ ${#missing[@]} -eq 0 ] && [ ${#from_cran[@]} -eq 0 ] && [ ${#into_lib[@]} -eq 0 ] && exit 0

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  if on_path sudo && { [ -t 0 ] || sudo -n true 2> /dev/null; }; then
    as_root=(sudo)
  else
    as_root=(false)
  fi
fi

can_install() { on_path apt-get && [ "${as_root[*]:-}" != false ]; }
root_run() { ${as_root[@]+"${as_root[@]}"} "$@"; }

# Tests start servers of their own: Debian's must not start because they are installed.
policy=
start_no_service() {
  [ -e /usr/sbin/policy-rc.d ] && return
  policy=/usr/sbin/policy-rc.d
  printf '#!/bin/sh\nexit 101\n' | root_run tee "$policy" > /dev/null
  root_run chmod 755 "$policy"
}

by_apt() {
  case " $* " in *' openssh-server '* | *' slurmd '* | *' munge '*) start_no_service ;; esac
  root_run apt-get update && root_run env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y --no-install-recommends "$@"
}

# install.packages() only warns where it fails.
by_cran() {
  local package
  for package in "$@"; do
    root_run Rscript -e \
      "install.packages('${package#cran-}', repos = 'https://cloud.r-project.org')"
    has_r_package "${package#cran-}" || return 1
  done
}

by_lib() {
  local package
  mkdir -p "$root/.lib"
  for package in "$@"; do
    R_LIBS="$root/.lib" Rscript -e "install.packages('${package#lib-}', lib = '$root/.lib',
      dependencies = NA, repos = 'https://cloud.r-project.org')"
    has_r_package "${package#lib-}" || return 1
  done
}

# install <how> <packages>...
install() {
  local how=$1
  shift
  echo "Installing $*"
  log=$(mktemp)
  trap 'rm -f "$log"; [ -z "$policy" ] || root_run rm -f "$policy"' EXIT
  if "by_$how" "$@" > "$log" 2>&1; then return 0; fi
  tail -n 20 "$log" >&2
  return 1
}

if can_install; then
  if [ ${#missing[@]} -gt 0 ] && ! install apt "${missing[@]}"; then
    echo "apt could not install ${missing[*]}; what it said is above." >&2
    exit 1
  fi
  missing=()
  # What comes from CRAN is optional: tests that need it are skipped without it.
  if [ ${#from_cran[@]} -gt 0 ] && ! install cran "${from_cran[@]}"; then
    echo "${from_cran[*]#cran-} could not be installed from CRAN;" \
      "tests that need it are skipped." >&2
  fi
fi
if [ ${#into_lib[@]} -gt 0 ] && ! install lib "${into_lib[@]}"; then
  echo "${into_lib[*]#lib-} could not be installed from CRAN into .lib;" \
    "tests that need it are skipped." >&2
fi
[ ${#missing[@]} -eq 0 ] && exit 0

names=""
for package in "${missing[@]}"; do
  names+="${names:+, }$(common_name "$package")"
done
echo "Please install $names first" \
  "(on Debian or Ubuntu, as root: apt-get install ${missing[*]})." >&2
exit 1
