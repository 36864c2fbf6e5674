// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// era is how a subject is called.
type era int

const (
	modern era = iota
	legacy
	// plain is a request without a protocol around it: of the modern era by
	// its bytes, but what answers knows nothing of that.
	plain
)

const (
	callParams = `"name":"echo","arguments":{"text":"` + said + `"}`
	metaParams = `,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`
	initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}`
	initiated  = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
)

// caller holds one connection, and in the legacy era one session.
type caller struct {
	address, path string
	conn          net.Conn
	reader        *bufio.Reader
	request       []byte
}

// patience is how long one answer may take.
const patience = 30 * time.Second

// dial opens a connection and what goes before the first call.
func dial(address, path string, e era) (*caller, error) {
	c := &caller{address: address, path: path}
	err := c.connect()
	if err != nil {
		return nil, err
	}
	headers, params := []string{"Mcp-Protocol-Version: 2026-07-28", "Mcp-Method: tools/call", "Mcp-Name: echo"}, callParams+metaParams
	if e == legacy {
		if headers, err = c.session(); err != nil {
			return nil, fmt.Errorf("open a session: %w", err)
		}
		params = callParams
	}
	c.request = c.encode(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{`+params+`}}`, headers)
	return c, nil
}

// connect opens a new connection in place of the one there is; a session stays.
func (c *caller) connect() error {
	if c.conn != nil {
		_ = c.conn.Close()
	}
	conn, err := net.Dial("tcp", c.address)
	if err != nil {
		return err
	}
	c.conn, c.reader = conn, bufio.NewReader(conn)
	return nil
}

func (c *caller) encode(body string, headers []string) []byte {
	lines := append([]string{
		"POST " + c.path + " HTTP/1.1", "Host: " + c.address, "Content-Type: application/json", "Accept: application/json, text/event-stream",
		fmt.Sprintf("Content-Length: %d", len(body)),
	}, headers...)
	return []byte(strings.Join(lines, "\r\n") + "\r\n\r\n" + body)
}

// session opens one and gives the headers of its calls.
func (c *caller) session() ([]string, error) {
	response, body, err := c.exchange(c.encode(initialize, nil))
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("initialize: %d %s", response.StatusCode, body)
	}
	headers := []string{"Mcp-Protocol-Version: 2025-11-25"}
	if id := response.Header.Get("Mcp-Session-Id"); id != "" {
		headers = append(headers, "Mcp-Session-Id: "+id)
	}
	response, body, err = c.exchange(c.encode(initiated, headers))
	if err == nil && response.StatusCode/100 != 2 {
		err = fmt.Errorf("initialized: %d %s", response.StatusCode, body)
	}
	return headers, err
}

func (c *caller) exchange(request []byte) (*http.Response, []byte, error) {
	if err := c.conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return nil, nil, err
	}
	if _, err := c.conn.Write(request); err != nil {
		return nil, nil, err
	}
	response, err := http.ReadResponse(c.reader, nil)
	if err != nil {
		return nil, nil, err
	}
	body, err := io.ReadAll(response.Body)
	_ = response.Body.Close()
	return response, body, err
}

var wanted = []byte(said)

// call makes one call and looks at the answer.
func (c *caller) call() error {
	response, body, err := c.exchange(c.request)
	if err == nil && (response.StatusCode != http.StatusOK || !bytes.Contains(body, wanted)) {
		err = fmt.Errorf("answers %d %.300s", response.StatusCode, body)
	}
	return err
}

// load calls over all connections for a while and says how often.
func load(callers []*caller, window time.Duration) (calls int, took time.Duration, err error) {
	var all sync.WaitGroup
	var mu sync.Mutex
	began := time.Now()
	for _, c := range callers {
		all.Go(func() {
			n := 0
			var failure error
			for failure == nil && time.Since(began) < window {
				failure = c.call()
				n++
			}
			mu.Lock()
			defer mu.Unlock()
			calls += n
			if err == nil {
				err = failure
			}
		})
	}
	all.Wait()
	return calls, time.Since(began), err
}
