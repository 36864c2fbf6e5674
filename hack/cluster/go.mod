module github.com/espalier-dev/espalier/hack/cluster

go 1.26.0
