// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/espalier-dev/espalier/hack/cluster/internal/proc"
)

// readyTimeout bounds each wait for something to become ready, on a machine that may be
// busy with other builds.
const readyTimeout = 3 * time.Minute

// waitFor repeats check until it returns nil. It gives up early when one of the named
// components has died, and shows what that one said last.
func (c *Cluster) waitFor(ctx context.Context, check func(context.Context) error, components ...string) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	for {
		err := check(ctx)
		if err == nil {
			return nil
		}
		if dead := c.firstDead(components); dead != "" {
			return fmt.Errorf("%s has died; the end of %s:\n%s", dead, c.logFile(dead), tail(c.logFile(dead), 15))
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w; last: %w", context.Cause(ctx), err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func (c *Cluster) firstDead(components []string) string {
	for _, name := range components {
		if note, err := proc.Read(c.notes(), name); err != nil || !note.Alive() {
			return name
		}
	}
	return ""
}

// tail returns the last lines of a file.
func tail(path string, count int) string {
	data, _ := os.ReadFile(path)
	lines := strings.Split(strings.TrimRight(string(data), "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-count):], "\n")
}
