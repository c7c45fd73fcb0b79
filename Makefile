# What a newcomer types. `make demo` and `make test` do all set-up themselves; the second time there is none to do.

CARGO   ?= cargo
PROCTOR := target/debug/proctor
DEMO    ?= runs/demo
FUZZ_SECONDS ?= 600

.DEFAULT_GOAL := help

.PHONY: help
help: ## Show what there is
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1|\2/' | column -t -s '|'

.PHONY: host
host: ## Check what this machine must have; as root on Debian, install it and start the engine
	@bash images/setup-host.sh

.PHONY: build
build: host ## Build the proctor binary
	@test -x $(PROCTOR) || echo "Building proctor: some minutes, the first time"
	$(CARGO) build --locked --package proctor

.PHONY: setup
setup: build ## Build the toolchain image and install the agent CLIs, if they are not there yet
	@$(PROCTOR) image build
	@$(PROCTOR) harness install codex claude-code opencode gemini qwen pi

.PHONY: demo
demo: setup ## Run all sample tasks with the real Codex and Claude Code CLIs and the scripted model
	$(PROCTOR) run --tasks tasks/samples --harness codex --harness claude-code --model script --budget 120s -j 2 --out $(DEMO)
	@echo
	@echo "Each trial is a folder below $(DEMO)/trials: outcome.json, trace.jsonl, artifacts/, render/output.png, raw/, model/."
	@echo "Pictures: ls $(DEMO)/trials/vao/*/*/1/render/output.png"

.PHONY: test
test: setup ## Run every test: real containers, real CLIs, real Chrome and TeX
	bash images/setup-host.test.sh
	$(CARGO) test --locked --workspace --no-fail-fast

.PHONY: test-slurm
test-slurm: setup ## Test `proctor slurm` on a Slurm of one node on this machine; as root on Debian, installs it
	$(CARGO) test --locked --package proctor-tests --test slurm

.PHONY: test-litellm
test-litellm: setup ## Test agents behind a LiteLLM proxy, which this installs (750 MB); not part of `make test`
	bash tests/litellm/run.sh

.PHONY: fuzz
fuzz: ## Fuzz every reader of session files, streams and scripts, FUZZ_SECONDS each
	PROCTOR_FUZZ_SECONDS=$(FUZZ_SECONDS) $(CARGO) test --locked --release --package proctor-tests --test fuzz -- --nocapture

.PHONY: test-atif
test-atif: build ## Validate exported trajectories by the validator of their format, which this installs into target/
	bash tests/atif/run.sh

.PHONY: lint
lint: ## Formatting and lints
	$(CARGO) fmt --all --check
	$(CARGO) clippy --locked --workspace --all-targets -- --deny warnings
	$(CARGO) clippy --locked --package proctor-tests --test slurm -- --deny warnings
	@if command -v cargo-deny >/dev/null; then cargo deny --offline check bans licenses sources; else echo "cargo-deny is not installed: licences and banned crates are not checked"; fi

.PHONY: ci
ci: test test-slurm test-atif lint ## What continuous integration runs

.PHONY: bench
bench: setup ## Measure: cost of a trial, overrun, rendering; as ratios beside the bare tools
	$(CARGO) build --locked --release --package proctor
	$(CARGO) build --locked --release --package proctor-tests --bins
	target/release/bench

.PHONY: install
install: ## Install an optimised proctor into cargo's bin folder
	$(CARGO) install --locked --path runner/cli

.PHONY: clean
clean: ## Remove what was built and the demo run; the image and the CLIs stay
	$(CARGO) clean
	rm -rf $(DEMO)
