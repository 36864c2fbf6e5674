module github.com/espalier-dev/espalier/hack/cluster

go 1.26.0

require golang.org/x/sys v0.50.0
