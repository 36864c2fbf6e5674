// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/espalier-dev/espalier/internal/serverconfig"
)

// largeTools is how many tools a large catalog has.
const largeTools = 10000

// catalogPatience is how long one may take to be loaded.
const catalogPatience = 2 * time.Minute

// get asks the internal port.
func get(port int, path string) (string, error) {
	client := http.Client{Timeout: patience}
	response, err := client.Get(fmt.Sprintf("http://127.0.0.1:%d%s", port, path))
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s answers %s", path, response.Status)
	}
	return string(raw), err
}

func awaitReady(port int) (err error) {
	for began := time.Now(); time.Since(began) < catalogPatience; time.Sleep(2 * time.Millisecond) {
		if _, err = get(port, "/readyz"); err == nil {
			return nil
		}
	}
	return err
}

// largeCatalog tells what 10,000 tools cost: loading them, reloading after an
// edit of one and of all descriptions, and memory.
func (s *stage) largeCatalog() error {
	folder := filepath.Join(s.dir, "large")
	if err := mount(folder, large(0, false)); err != nil {
		return err
	}
	port, err := freePort()
	if err != nil {
		return err
	}
	p, err := s.serve(folder, port)
	if err != nil {
		return err
	}
	defer p.stop()
	l := &largeServer{process: p, folder: folder, address: fmt.Sprintf("127.0.0.1:%d", port)}
	if err := l.tellCold(); err != nil {
		return err
	}
	for _, step := range []struct {
		name   string
		config *serverconfig.Config
	}{{"reload-one-edited", large(0, true)}, {"reload-all-described", large(1, true)}} {
		if err := l.reload(step.name, step.config); err != nil {
			return err
		}
	}
	return l.tellMemory("after-reloads")
}

type largeServer struct {
	process         *process
	folder, address string
}

func (l *largeServer) bench(what string, value any, unit string) {
	fmt.Fprintf(os.Stdout, "BENCH dataplane/catalog-%d/%s %v %s\n", largeTools, what, value, unit)
}

func (l *largeServer) tellCold() error {
	used, err := l.process.cpu()
	if err != nil {
		return err
	}
	l.bench("first-load/cpu", used.Milliseconds(), "ms")
	return l.tellMemory("after-first-load")
}

func (l *largeServer) tellMemory(when string) error {
	for line, name := range map[string]string{"VmRSS": "resident", "VmHWM": "peak"} {
		mib, err := l.process.memory(line)
		if err != nil {
			return err
		}
		l.bench("memory-"+when+"/"+name, mib, "MiB")
	}
	return nil
}

// reload mounts a catalog and waits until it is served.
func (l *largeServer) reload(name string, config *serverconfig.Config) error {
	payload, err := serverconfig.Encode(config)
	if err != nil {
		return err
	}
	digest := serverconfig.Digest(payload)
	before, err := l.process.cpu()
	if err != nil {
		return err
	}
	if err := mount(l.folder, config); err != nil {
		return err
	}
	began := time.Now()
	for {
		served, err := l.digest()
		if err != nil {
			return err
		}
		if served == digest {
			break
		}
		if time.Since(began) > catalogPatience {
			return fmt.Errorf("%s: the catalog was not loaded", name)
		}
		time.Sleep(5 * time.Millisecond)
	}
	took := time.Since(began)
	after, err := l.process.cpu()
	if err != nil {
		return err
	}
	l.bench(name+"/time", took.Milliseconds(), "ms")
	l.bench(name+"/cpu", (after - before).Milliseconds(), "ms")
	return nil
}

// digest of the served catalog, as discover tells it.
func (l *largeServer) digest() (string, error) {
	c, err := dial(l.address, mcpPath, modern)
	if err != nil {
		return "", err
	}
	defer c.conn.Close()
	request := c.encode(`{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{`+strings.TrimPrefix(metaParams, ",")+`}}`,
		[]string{"Mcp-Protocol-Version: 2026-07-28", "Mcp-Method: server/discover"})
	_, body, err := c.exchange(request)
	if err != nil {
		return "", err
	}
	var answer struct {
		Result struct {
			Meta map[string]json.RawMessage `json:"_meta"`
		} `json:"result"`
	}
	var digest string
	if err := json.Unmarshal(body, &answer); err != nil {
		return "", err
	}
	err = json.Unmarshal(answer.Result.Meta["mcp.espalier.dev/catalog-digest"], &digest)
	return digest, err
}

// large is a version of a catalog of largeTools tools that are expressions;
// edited changes one of them.
func large(version int, edited bool) *serverconfig.Config {
	c := baseConfig()
	for i := range largeTools {
		name := fmt.Sprintf("tool_%05d", i)
		expression := fmt.Sprintf("'%s knows ' + args.id + (has(args.limit) ? ' up to ' + string(args.limit) : '')", name)
		if edited && i == largeTools/2 {
			expression = "'edited'"
		}
		c.Tools = append(c.Tools, serverconfig.Tool{
			Name: name, Source: "mcptool/" + name, Metadata: map[string]string{"category": "large"},
			Definition: json.RawMessage(fmt.Sprintf(`{"name":%q,"title":"The tool %s","description":"Looks up what is known of %s, in version %d of all, and says so in a sentence.",`+
				`"inputSchema":{"type":"object","required":["id"],"properties":{"id":{"type":"string","minLength":1,"description":"Which one"},"limit":{"type":"integer","minimum":1,"maximum":%d}}},`+
				`"annotations":{"readOnlyHint":true}}`, name, name, name, version, 100+i)),
			Expression: &serverconfig.Result{Text: expression},
		})
	}
	return c
}
