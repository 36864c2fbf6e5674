// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package alerts has the tests of what the chart brings for Prometheus and
// Grafana: charts/espalier/files/rules.yaml and dashboard.json. Rules are
// evaluated on the series of cases.yaml by Prometheus' own engine, which is why
// this is a module of its own.
package alerts
