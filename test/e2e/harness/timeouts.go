// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import "time"

// How long tests wait. Each wait polls; none of these is slept through.
const (
	// ReadyTimeout: a new server's pods start, load and are proved.
	ReadyTimeout = 90 * time.Second
	// ImageTimeout: the same with an image of Node, which starts slowly.
	ImageTimeout = 3 * time.Minute
	// StatusTimeout: a change of a spec is judged.
	StatusTimeout = 20 * time.Second
	// ServedTimeout: a change of a tool is served and told.
	ServedTimeout = 30 * time.Second
	// RolloutTimeout: the pods of one server are replaced, one after another,
	// each with its drain.
	RolloutTimeout = 3 * time.Minute
	// FleetTimeout: twenty servers start or are replaced.
	FleetTimeout = 5 * time.Minute
	// DeleteTimeout: the garbage collector has removed what a server owned.
	DeleteTimeout = 90 * time.Second
	// OperatorTimeout: a new operator pod runs and leads.
	OperatorTimeout = 90 * time.Second
	// RotationTimeout: a changed Secret is in use without a restart.
	RotationTimeout = 75 * time.Second
	// CallTimeout: one request to a pod.
	CallTimeout = 10 * time.Second

	// Poll is the pause between two looks at the API server.
	Poll = 250 * time.Millisecond
)
