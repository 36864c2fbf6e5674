// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/espalier-dev/espalier/hack/cluster/internal/proc"
)

// StopComponent kills one component, as a crash would, and keeps the note of how to
// start it again.
func (c *Cluster) StopComponent(name string) error {
	note, err := c.component(name)
	if err != nil {
		return err
	}
	proc.Stop(note, 0)
	return nil
}

// StartComponent starts one component that up has started before, with the same program
// and arguments, and waits for the API server if that is the one.
func (c *Cluster) StartComponent(ctx context.Context, name string) error {
	note, err := c.component(name)
	if err != nil {
		return err
	}
	if !note.Alive() {
		if err := c.launch(note.Command); err != nil {
			return err
		}
	}
	if name != apiServer && name != etcd {
		return nil
	}
	api, err := c.api()
	if err != nil {
		return err
	}
	return c.waitFor(ctx, api.serverReady, name)
}

func (c *Cluster) component(name string) (proc.Note, error) {
	note, err := proc.Read(c.notes(), name)
	if err != nil {
		return note, fmt.Errorf("no component %q in this cluster: %w", name, err)
	}
	return note, nil
}

// Status prints which components run and whether the cluster answers.
func (c *Cluster) Status(ctx context.Context, w io.Writer) error {
	for _, note := range proc.Notes(c.notes()) {
		state := "running"
		if !note.Alive() {
			state = "dead"
		}
		fmt.Fprintf(w, "%-20s %-8s process %d\n", note.Name, state, note.PID)
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if err := c.running(ctx); err != nil {
		return fmt.Errorf("not up: %w", err)
	}
	fmt.Fprintf(w, "up; kubeconfig %s\n", c.Kubeconfig())
	return nil
}

// Logs prints what a component has said since the cluster came up.
func (c *Cluster) Logs(w io.Writer, name string) error {
	file, err := os.Open(c.logFile(name))
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = io.Copy(w, file)
	return err
}
