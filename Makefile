# What a checkout can do.  Each target is one script in tools/, which says at its top what it does;
# what a target needs and this machine lacks is installed first where apt can do it
# (tools/setup.sh).

.PHONY: help demo test thorough slow seeds engines faults interrupts memory-limit fuzz fuzz-c \
  races torture speed lint digests digests-record compilers check crossings sanitize \
  sanitize-part docs site bench bench-groups bench-pictures bench-zoo-others claims zoo \
  zoo-sources reproduce reproduce-small articles phrases install ci-deps clean

help:
	@echo 'make demo       install what is missing, then run the demonstration'
	@echo 'make test       install what is missing, then run the tests'
	@echo 'make thorough   those that take longer: crossings, statistics over seeds, tools'
	@echo 'make slow       all of them, with more seeds and cases'
	@echo 'make seeds      the tests of the package with three other seeds (SEEDS="1000 2000 3000")'
	@echo 'make engines    tests on clusters of SSH, MPI, mirai and Slurm, all on this machine'
	@echo 'make faults     workers of clusters are killed, stopped, or answer nonsense'
	@echo 'make interrupts SIGINT at random moments of calls (SEED= CASES= KIND=)'
	@echo 'make memory-limit  calls with too little memory: a sentence, and R goes on'
	@echo 'make fuzz       random calls: a finite number or a sentence? (KIND= SEED= CASES= CASE=)'
	@echo 'make fuzz-c     C code that reads files and states, under libFuzzer and the sanitizers'
	@echo 'make races      every method with four threads under ThreadSanitizer'
	@echo 'make torture    every method while R collects garbage all the time: the same bits?'
	@echo 'make speed      ten fits against an earlier commit, HEAD^ (BASE=<commit>)'
	@echo 'make lint       layers, circles, state, names, width of lines (tools/lint-layers.R)'
	@echo 'make digests    do runs still give the bits that were recorded? (tools/digests.R)'
	@echo 'make compilers  gcc and clang, all warnings as errors, with and without OpenMP'
	@echo 'make check      R CMD check --as-cran; any error, warning or note fails'
	@echo 'make crossings  all pairs of features under ASan and UBSan, a part of make sanitize'
	@echo 'make sanitize-part  the crossings and a quarter of the tests under them, each time another'
	@echo 'make sanitize   the tests under ASan and UBSan, a short script under valgrind'
	@echo 'make docs       man/ and NAMESPACE from the comments in R/'
	@echo 'make site       the pages of README, help and articles, in docs/ (pkgdown; five minutes)'
	@echo 'make articles   the articles of the site that are not in the package'
	@echo 'make bench      a million rows by every method, half an hour (others: bench/README.md)'
	@echo 'make claims     do the figures of README.md and other documents hold? four minutes'
	@echo 'make zoo        the default on 300 problems drawn from a seed, and a report; ten minutes'
	@echo 'make bench-groups  regressions with group-level effects against references; ten minutes'
	@echo 'make bench-pictures  bench/results/*.png from the tables there'
	@echo 'make bench-zoo-others  the problems of the zoo by all other methods; days'
	@echo 'make zoo-sources  rows in one and two passes, shards, a database, pieces; twenty minutes'
	@echo 'make reproduce  every figure and table of the four papers (reproduce/README.md)'
	@echo 'make phrases    sequences of words that documents share with texts (PAPERS=<folder>)'
	@echo 'make install    the package into the private library .lib'
	@echo 'make ci-deps    install what continuous integration needs beyond the tests'
	@echo 'make clean      remove everything built here'

demo:
	@tools/setup.sh run
	@tools/install.sh
	@tools/with-lib.sh Rscript bench/demo.R

test:
	@tools/setup.sh test
	@tools/test.sh quick

thorough:
	@tools/setup.sh test
	@tools/test.sh thorough

slow:
	@tools/setup.sh test
	@LOGEVIDENCE_SLOW=true tools/test.sh all

seeds:
	@tools/setup.sh test
	@tools/seeds.sh

engines:
	@tools/setup.sh test engines
	@tools/install.sh
	@NOT_CRAN=true LOGEVIDENCE_ENGINES=true tools/with-lib.sh Rscript tools/run-tests.R '^engines$$'

faults:
	@tools/setup.sh test engines
	@tools/install.sh
	@SEED='$(SEED)' CASES='$(CASES)' CASE='$(CASE)' ENGINE='$(ENGINE)' FAULT='$(FAULT)' \
	  SAID='$(SAID)' OMP_NUM_THREADS=1 tools/with-lib.sh Rscript tools/faults.R

interrupts:
	@tools/setup.sh test
	@tools/install.sh
	@SEED='$(SEED)' CASES='$(CASES)' KIND='$(KIND)' tools/with-lib.sh Rscript tools/interrupts.R

memory-limit:
	@tools/setup.sh test
	@tools/install.sh
	@KIND='$(KIND)' tools/with-lib.sh Rscript tools/memory-limit.R

fuzz:
	@tools/setup.sh run
	@tools/install.sh
	@KIND='$(KIND)' SEED='$(SEED)' CASES='$(CASES)' CASE='$(CASE)' SECONDS_OF_FUZZ='$(SECONDS)' \
	  SAID='$(SAID)' tools/fuzz.sh

fuzz-c:
	@tools/setup.sh run watch
	@TARGET='$(TARGET)' INPUT='$(INPUT)' SECONDS_OF_FUZZ='$(SECONDS)' tools/fuzz-c.sh

races:
	@tools/setup.sh run watch
	@tools/races.sh

torture:
	@tools/setup.sh run
	@tools/install.sh
	@TORTURE=300 tools/with-lib.sh Rscript tools/every-method.R

speed:
	@tools/setup.sh run
	@BASE='$(BASE)' PAIRS='$(PAIRS)' FITS='$(FITS)' tools/speed.sh

lint:
	@Rscript tools/lint-layers.R

digests:
	@tools/setup.sh run
	@tools/install.sh
	@tools/with-lib.sh Rscript tools/digests.R

digests-record:
	@tools/setup.sh run
	@tools/install.sh
	@tools/with-lib.sh Rscript tools/digests.R record

compilers:
	@tools/setup.sh ci
	@tools/compilers.sh

check:
	@tools/setup.sh test ci
	@tools/check.sh

crossings:
	@tools/setup.sh test sanitize
	@DEBUG_INFORMATION=-g1 tools/sanitize.sh asan '^crossings$$'

# The quarter is another one after each commit.
sanitize-part:
	@tools/setup.sh test sanitize
	@LOGEVIDENCE_PART=$$(git rev-list --count HEAD 2> /dev/null || date +%j) \
	  DEBUG_INFORMATION=-g1 tools/sanitize.sh asan

sanitize:
	@tools/setup.sh test sanitize
	@tools/sanitize.sh

docs:
	@tools/setup.sh run docs
	@tools/docs.sh

site:
	@tools/setup.sh run site
	@tools/site.sh

articles:
	@tools/setup.sh test ci
	@tools/install.sh
	@tools/articles.sh

bench:
	@tools/setup.sh run
	@tools/install.sh
	@tools/with-lib.sh Rscript bench/million.R compare
	@tools/with-lib.sh Rscript bench/million.R draw

claims:
	@tools/setup.sh run
	@tools/install.sh
	@tools/with-lib.sh Rscript bench/claims.R

zoo:
	@tools/setup.sh run
	@tools/install.sh
	@tools/with-lib.sh Rscript bench/zoo.R generated run --seeds 1
	@tools/with-lib.sh Rscript bench/zoo.R generated report

bench-groups:
	@tools/setup.sh run
	@tools/install.sh
	@tools/with-lib.sh Rscript bench/groups.R run 10
	@tools/with-lib.sh Rscript bench/groups.R report

# bench/geweke.R and bench/papers.R draw their pictures when they run.
bench-pictures:
	@tools/setup.sh run
	@tools/install.sh
	@for script in million stream sensitivity shift bdmc; do \
	  tools/with-lib.sh Rscript bench/$$script.R draw || exit 1; done

bench-zoo-others:
	@tools/setup.sh run
	@tools/install.sh
	@tools/with-lib.sh Rscript bench/zoo.R run --methods all --seeds 100 \
	  --file bench/results/zoo-others.csv
	@tools/with-lib.sh Rscript bench/zoo.R summary

zoo-sources:
	@tools/setup.sh test
	@tools/install.sh
	@tools/with-lib.sh Rscript bench/zoo.R sources run --minutes 20
	@tools/with-lib.sh Rscript bench/zoo.R sources report

reproduce:
	@tools/setup.sh run
	@tools/install.sh
	@tools/with-lib.sh Rscript reproduce/run.R full

reproduce-small:
	@tools/setup.sh run
	@tools/install.sh
	@tools/with-lib.sh Rscript reproduce/run.R check
	@tools/with-lib.sh Rscript reproduce/run.R small

phrases:
	@Rscript tools/shared-phrases.R '$(PAPERS)'

install:
	@tools/setup.sh run
	@tools/install.sh

ci-deps:
	@tools/setup.sh ci

clean:
	@./cleanup
	@rm -rf .lib
