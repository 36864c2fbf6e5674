# "make help" lists what there is. Tools are pinned in hack/tools, hack/helm and
# hack/lint and built into a cache outside the checkout when they are first needed
# (ESPALIER_CACHE, by default ~/.cache/espalier).

SHELL := /usr/bin/env bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

MODULE := github.com/espalier-dev/espalier
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)

# Where images are pushed to and pulled from, and their tag.
IMAGE_REGISTRY ?= ghcr.io/espalier-dev
IMAGE_TAG ?= dev
PLATFORMS ?= linux/amd64 linux/arm64

# Where "make install-plugin" puts the kubectl plugin; what it is built for, and
# where its archives will lie (VERSION in it stays as it is).
PLUGIN_BIN ?= $(HOME)/.local/bin
PLUGIN_PLATFORMS ?= linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64
PLUGIN_URL ?= https://$(MODULE)/releases/download/VERSION

# The chart's version, a semantic one, and the OCI registry it is pushed to.
CHART_VERSION ?= $(shell hack/chart version '$(VERSION)')
CHART_REGISTRY ?= oci://$(IMAGE_REGISTRY)/charts

# Packages to test and flags of "go test", for a quick look at a few:
# make test-unit PKG=./internal/catalog/... TESTFLAGS='-run TestBuild -v'
PKG ?= ./...
TESTFLAGS ?=

GO_BUILD := CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags '-s -w -X $(MODULE)/internal/version.Version=$(VERSION)'

##@ General

.PHONY: help
help: ## Show this.
	@awk 'BEGIN {FS = ":.*##"; printf "Usage: make TARGET [VARIABLE=value ...]\n"} \
	  /^##@/ {printf "\n%s\n", substr($$0, 5)} \
	  /^[a-zA-Z0-9_-]+:.*##/ {printf "  %-18s%s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@printf '\nVariables: VERSION=%s IMAGE_REGISTRY=%s IMAGE_TAG=%s\n' '$(VERSION)' '$(IMAGE_REGISTRY)' '$(IMAGE_TAG)'

##@ Try it

.PHONY: demo
demo: ## Start a cluster on this machine, install Espalier and the examples, call a tool.
	@hack/demo.sh

.PHONY: demo-down
demo-down: ## Remove all that the demo started.
	@hack/demo.sh down

.PHONY: cluster-up
cluster-up: ## Start the local cluster (a cold build takes tens of minutes, a start seconds).
	@go run -C hack/cluster . up

.PHONY: cluster-down
cluster-down: ## Stop the local cluster and remove its traces.
	@go run -C hack/cluster . down

##@ Write

.PHONY: generate
generate: ## Generate deepcopy functions from api/.
	@$$(hack/tool controller-gen) object:headerFile=hack/boilerplate.go.txt paths=./api/...

.PHONY: manifests
manifests: ## Generate the CRDs in config/crd from api/, and what of charts/espalier is made of config/ and values.yaml.
	@$$(hack/tool controller-gen) crd paths=./api/... output:crd:artifacts:config=config/crd/bases
	@$$(hack/tool crdtrim) config/crd/bases/*.yaml
	@$$(hack/tool chartgen) .
	@hack/chart render

.PHONY: crd-released
crd-released: ## Make the CRDs those of the last release, which verify compares with. Part of a release.
	@$$(hack/tool crdcompat) -baseline config/crd/released -write config/crd/bases/*.yaml

.PHONY: docs
docs: ## Generate docs/reference from api/, and the generated parts of other pages.
	@$$(hack/tool crd-ref-docs) --source-path=api/v1alpha1 --config=hack/docs/crd-ref-docs.yaml \
	  --renderer=markdown --max-depth=20 --output-path=docs/reference/v1alpha1.md --log-level=ERROR
	@go run ./hack/docs

.PHONY: fmt
fmt: ## Format the Go code.
	@$$(hack/tool golangci-lint) fmt ./...

.PHONY: lint-fix
lint-fix: ## Repair what the linters can repair.
	@hack/modules "$$(hack/tool golangci-lint)" run -c "$(CURDIR)/.golangci.yml" --fix ./...

.PHONY: tidy
tidy: ## Tidy go.mod of every module.
	@hack/modules go mod tidy

##@ Check

.PHONY: verify
verify: ## Check that generated files are current, and lint everything.
	@hack/verify

.PHONY: lint
lint: ## Run the linters: import rules, API conventions, style.
	@hack/modules "$$(hack/tool golangci-lint)" run -c "$(CURDIR)/.golangci.yml" ./...

.PHONY: test
test: test-unit fuzz test-integration test-e2e ## Run all tests.

.PHONY: test-unit
test-unit: ## Run the tests that need nothing but Go.
	@hack/gotest unit '$(PKG)' $(TESTFLAGS)

.PHONY: fuzz
fuzz: ## Run every fuzz test for FUZZTIME, by default 2000x: so many inputs.
	@hack/fuzz '$(PKG)'

.PHONY: test-integration
test-integration: ## Run the tests that need an API server (etcd and kube-apiserver are started and stopped).
	@hack/gotest integration '$(PKG)' $(TESTFLAGS)

.PHONY: test-e2e
test-e2e: ## Run the tests on a real cluster, the local one unless KUBECONFIG says otherwise.
	@hack/e2e.sh

.PHONY: bench
bench: ## Run the benchmarks; prints lines "BENCH name value unit".
	@hack/bench

.PHONY: conformance
conformance: ## Run the public MCP conformance suite, on the local cluster unless KUBECONFIG says otherwise.
	@hack/conformance.sh

.PHONY: soak
soak: ## Run what takes long: the cost of fleets of 100 to 3,000 servers, fuzz tests for a minute each, conformance with pinned upstreams, chaos, long outages (root, Linux).
	@hack/soak.sh

##@ Build

.PHONY: build
build: ## Build bin/manager and bin/server, static.
	@$(GO_BUILD) -o bin/ ./cmd/manager ./cmd/server

.PHONY: docs-session
docs-session: ## Record the terminal session of README.md and docs/kubectl-mcp.md on the cluster where Espalier is installed.
	@hack/session.sh

.PHONY: build-plugin
build-plugin: ## Build bin/kubectl-mcp, the kubectl plugin, and put what completes it beside it.
	@$(GO_BUILD) -o bin/ ./cmd/kubectl-mcp
	@cp cmd/kubectl-mcp/kubectl_complete-mcp bin/

.PHONY: install-plugin
install-plugin: build-plugin ## Install the kubectl plugin for the user that runs this, into PLUGIN_BIN.
	@mkdir -p '$(PLUGIN_BIN)'
	@install -m 0755 bin/kubectl-mcp '$(PLUGIN_BIN)/kubectl-mcp'
	@echo '$(PLUGIN_BIN)/kubectl-mcp'
	@command -v kubectl-mcp >/dev/null || echo 'kubectl finds it once PATH has $(PLUGIN_BIN)'

.PHONY: plugin
plugin: ## Build the kubectl plugin for PLUGIN_PLATFORMS into bin/plugin: archives, checksums, a manifest for krew.
	@go run ./hack/plugin -version '$(VERSION)' -platforms '$(PLUGIN_PLATFORMS)' -url '$(PLUGIN_URL)'

.PHONY: images
images: ## Build both images for PLATFORMS into bin/images, without Docker; images push=yes pushes them to IMAGE_REGISTRY.
	@VERSION='$(VERSION)' IMAGE_REGISTRY='$(IMAGE_REGISTRY)' IMAGE_TAG='$(IMAGE_TAG)' PLATFORMS='$(PLATFORMS)' hack/build-images $(push)

.PHONY: sbom
sbom: ## Write dist/sbom: what modules are in each program, for PLATFORMS, in CycloneDX.
	@VERSION='$(VERSION)' PLATFORMS='$(PLATFORMS)' hack/sbom

.PHONY: vulncheck
vulncheck: ## Look for known vulnerabilities in what is built (asks vuln.go.dev, or GOVULNDB).
	@hack/vulncheck

.PHONY: dist
dist: ## Build dist/install.yaml: everything that "kubectl apply --server-side" needs.
	@mkdir -p dist
	@$$(hack/tool kustomize) build config/default | sed \
	  -e 's#ghcr.io/espalier-dev/manager:dev#$(IMAGE_REGISTRY)/manager:$(IMAGE_TAG)#' \
	  -e 's#ghcr.io/espalier-dev/server:dev#$(IMAGE_REGISTRY)/server:$(IMAGE_TAG)#' > dist/install.yaml
	@echo dist/install.yaml

.PHONY: helm-package
helm-package: ## Package the chart into dist/, for the images of IMAGE_REGISTRY and IMAGE_TAG.
	@CHART_VERSION='$(CHART_VERSION)' IMAGE_REGISTRY='$(IMAGE_REGISTRY)' IMAGE_TAG='$(IMAGE_TAG)' hack/chart package

.PHONY: helm-push
helm-push: helm-package ## Push the packaged chart to CHART_REGISTRY, as an OCI artifact.
	@CHART_VERSION='$(CHART_VERSION)' CHART_REGISTRY='$(CHART_REGISTRY)' hack/chart push

##@ Deploy, to the cluster of KUBECONFIG

.PHONY: install
install: ## Install the CRDs alone, to run the manager from this machine.
	@$$(hack/tool kustomize) build config/crd | kubectl apply --server-side -f -

.PHONY: deploy
deploy: dist ## Install the CRDs and the operator with images from IMAGE_REGISTRY.
	@kubectl apply --server-side -f dist/install.yaml

.PHONY: undeploy
undeploy: dist ## Remove the operator, the CRDs and with them all MCPServers.
	@kubectl delete --ignore-not-found -f dist/install.yaml

.PHONY: clean
clean: ## Remove what was built in the checkout. The cache stays.
	@rm -rf bin dist build
