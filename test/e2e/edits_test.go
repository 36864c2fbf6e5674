// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/test/e2e/harness"
)

// What an edit may take until the last replica serves it.
const (
	editCount  = 200
	editP95    = 2 * time.Second
	editMax    = 5 * time.Second
	editGiveUp = 30 * time.Second
	editPoll   = 20 * time.Millisecond
	// servedEvery is after how many edits the test waits until Served is
	// True again, so that it is judged often.
	servedEvery = 5
)

// edit is one change of one tool, and how a replica shows that it serves it.
type edit struct {
	sort string
	// list says that the edit changes what tools/list answers.
	list  bool
	tool  string
	apply func(context.Context) error
	seen  func(context.Context, *harness.Peer) (bool, error)
}

var _ = Describe("Edits of tools", func() {
	It("are live in each of three replicas within seconds, without a rollout", Label(slow), func(ctx SpecContext) {
		ns := cluster.Namespace(ctx, "edits")
		scraper := ns.Scraper(ctx)
		backend := ns.Backend(ctx, "backend")
		ns.Create(ctx, harness.Server("edited", 3))
		t := &editedTools{ns: ns, backend: backend}
		ns.Create(ctx, t.initial()...)
		// Ready needs one pod that takes traffic. One that still starts may load an
		// older catalog first, as during a rollout, and Served does not move for it.
		ns.AwaitServer(ctx, "edited", harness.ReadyTimeout, harness.Ready)
		expectReplicas(ctx, ns, "edited", 3)
		for _, name := range t.fixed() {
			ns.AwaitTool(ctx, name, harness.ServedTimeout, harness.Served)
		}
		pods := harness.Identity(ns.Pods(ctx, "edited"))
		Expect(pods).To(HaveLen(3))
		peers := ns.Peers(ctx, "edited")
		var streams []*harness.Stream
		for _, peer := range peers {
			streams = append(streams, peer.Listen(ctx))
		}
		judge := t.judge(ctx, peers)
		first := scraper.Sum(ctx, "espalier_catalog_pokes_total", `attempt="first"`)
		repeat := scraper.Sum(ctx, "espalier_catalog_pokes_total", `attempt="repeat"`)

		all, bySort := harness.Figures{}, map[string]harness.Figures{}
		for i := range editCount {
			e := t.edit(i)
			took := measure(ctx, e, peers, streams)
			all, bySort[e.sort] = append(all, took), append(bySort[e.sort], took)
			if i%servedEvery == servedEvery-1 && e.sort != sortDelete {
				ns.AwaitTool(ctx, e.tool, harness.ServedTimeout, harness.Served)
			}
		}

		harness.Say("%d edits on 3 replicas, until the last replica serves each: %s", editCount, all)
		for _, sort := range sorts {
			harness.Say("  %-10s %s", sort, bySort[sort])
		}
		harness.Say("pokes: %.0f first, %.0f repeated",
			scraper.Sum(ctx, "espalier_catalog_pokes_total", `attempt="first"`)-first,
			scraper.Sum(ctx, "espalier_catalog_pokes_total", `attempt="repeat"`)-repeat)
		checks, lies := judge.stop()
		harness.Say("Served was True for the newest version %d times, and %d times wrongly", checks, len(lies))
		ns.Show(ctx, "After 200 edits")

		Expect(harness.Identity(ns.Pods(ctx, "edited"))).To(Equal(pods), "an edit must neither replace nor restart a pod")
		for i, stream := range streams {
			Expect(stream.Alive()).To(BeTrue(), "stream at %s", peers[i].Name)
		}
		Expect(lies).To(BeEmpty(), "Served was True for a version that a replica did not serve")
		Expect(checks).To(BeNumerically(">", editCount/servedEvery/2))
		Expect(all.Percentile(95)).To(BeNumerically("<", editP95), "p95")
		Expect(all.Max()).To(BeNumerically("<", editMax), "maximum")
	}, SpecTimeout(15*time.Minute))
})

// measure applies e and waits until each replica serves it and, if it changes
// the list, until each stream has told of that.
func measure(ctx context.Context, e edit, peers []*harness.Peer, streams []*harness.Stream) time.Duration {
	GinkgoHelper()
	told := make([]int64, len(streams))
	for i, stream := range streams {
		told[i] = stream.Changes()
	}
	start := time.Now()
	Expect(e.apply(ctx)).To(Succeed(), "%s of %s", e.sort, e.tool)
	took := make([]time.Duration, len(peers))
	var wg sync.WaitGroup
	for i, peer := range peers {
		wg.Go(func() { took[i] = awaitEdit(ctx, e, peer, start) })
	}
	wg.Wait()
	slowest := harness.Figures(took).Max()
	Expect(slowest).To(BeNumerically("<", editGiveUp), "%s of %s is not served", e.sort, e.tool)
	if e.list {
		for i, stream := range streams {
			Eventually(ctx, stream.Changes).WithTimeout(editMax).WithPolling(editPoll).
				Should(BeNumerically(">", told[i]), "stream at %s was not told of %s of %s", peers[i].Name, e.sort, e.tool)
		}
	}
	return slowest
}

func awaitEdit(ctx context.Context, e edit, peer *harness.Peer, start time.Time) time.Duration {
	for time.Since(start) < editGiveUp && ctx.Err() == nil {
		if ok, err := e.seen(ctx, peer); err == nil && ok {
			break
		}
		time.Sleep(editPoll)
	}
	return time.Since(start)
}

// The sorts of edits.
const (
	sortTitle      = "title"
	sortNew        = "new tool"
	sortExpression = "expression"
	sortURL        = "url"
	sortHeader     = "header"
	sortDelete     = "deletion"
)

// sorts in the order in which they take turns: a tool is new before it is deleted.
var sorts = []string{sortTitle, sortNew, sortExpression, sortURL, sortHeader, sortDelete}

// editedTools are tools whose versions grow with each edit.
type editedTools struct {
	ns      *harness.Namespace
	backend *harness.Backend
}

func (t *editedTools) fixed() []string { return []string{"titled", "spoken", "fetched", "headed"} }

func (t *editedTools) initial() []client.Object {
	out := []client.Object{
		harness.Tool("titled", "edited", harness.Says(`"titled"`), func(t *v1alpha1.MCPTool) { t.Spec.Title = "v0" }),
		harness.Tool("spoken", "edited", harness.Says(`"v0"`)),
		harness.Tool("fetched", "edited", harness.Gets(t.backend.URL+"/echo/v0")),
		harness.Tool("headed", "edited", harness.Gets(t.backend.URL+"/echo/", v1alpha1.Header{Name: "X-Version", Value: harness.To("v0")})),
	}
	// Others that nobody touches.
	for i := range 20 {
		out = append(out, harness.Tool(fmt.Sprintf("still-%02d", i), "edited", harness.Says(`"still"`)))
	}
	return out
}

// edit number i.
func (t *editedTools) edit(i int) edit {
	version := i + 1
	patch := func(tool string, spec string, args ...any) func(context.Context) error {
		return func(ctx context.Context) error {
			obj := &v1alpha1.MCPTool{ObjectMeta: metav1.ObjectMeta{Namespace: t.ns.Name, Name: tool}}
			return t.ns.Client.Patch(ctx, obj, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":`+spec+`}`, args...)))
		}
	}
	atVersion := func(tool string) func(context.Context, *harness.Peer) (bool, error) {
		return func(ctx context.Context, p *harness.Peer) (bool, error) {
			got, err := servedVersion(ctx, p, tool)
			return got == version, err
		}
	}
	e := edit{sort: sorts[i%len(sorts)]}
	switch e.sort {
	case sortTitle:
		e.tool, e.list = "titled", true
		e.apply, e.seen = patch(e.tool, `{"title":"v%d"}`, version), atVersion(e.tool)
	case sortExpression:
		e.tool = "spoken"
		e.apply, e.seen = patch(e.tool, `{"expression":{"text":"'v%d'"}}`, version), atVersion(e.tool)
	case sortURL:
		e.tool = "fetched"
		e.apply, e.seen = patch(e.tool, `{"http":{"url":"%s/echo/v%d"}}`, t.backend.URL, version), atVersion(e.tool)
	case sortHeader:
		e.tool = "headed"
		e.apply, e.seen = patch(e.tool, `{"http":{"headers":[{"name":"X-Version","value":"v%d"}]}}`, version), atVersion(e.tool)
	case sortNew, sortDelete:
		t.comeOrGo(&e, i)
	}
	return e
}

// comeOrGo makes e the creation of a tool, or its deletion in the same turn.
func (t *editedTools) comeOrGo(e *edit, i int) {
	e.tool, e.list = fmt.Sprintf("new-%d", i/len(sorts)), true
	e.apply = func(ctx context.Context) error {
		if e.sort == sortDelete {
			return t.ns.Client.Delete(ctx, &v1alpha1.MCPTool{ObjectMeta: metav1.ObjectMeta{Namespace: t.ns.Name, Name: e.tool}})
		}
		tool := harness.Tool(e.tool, "edited", harness.Says(`"new"`))
		tool.Namespace = t.ns.Name
		return t.ns.Client.Create(ctx, tool)
	}
	e.seen = func(ctx context.Context, p *harness.Peer) (bool, error) {
		tools, err := p.Tools(ctx)
		_, listed := tools[e.tool]
		return listed == (e.sort == sortNew), err
	}
}

// servedVersion is the version of a fixed tool that a replica serves.
func servedVersion(ctx context.Context, p *harness.Peer, tool string) (int, error) {
	text := ""
	switch tool {
	case "titled":
		tools, err := p.Tools(ctx)
		if err != nil {
			return 0, err
		}
		text = tools[tool].Title
	default:
		answer, err := p.Call(ctx, tool, nil)
		if err != nil {
			return 0, err
		}
		text = answer.Text()
		if tool != "spoken" {
			var echoed harness.Recorded
			if err := json.Unmarshal(answer.Structured, &echoed); err != nil {
				return 0, fmt.Errorf("%s answers %q: %w", tool, answer.Text(), err)
			}
			text = echoed.Headers["x-version"]
			if tool == "fetched" {
				_, err = fmt.Sscanf(echoed.Path, "/echo/%s", &text)
			}
		}
		if err != nil {
			return 0, err
		}
	}
	return parseVersion(text)
}

func parseVersion(text string) (version int, err error) {
	_, err = fmt.Sscanf(text, "v%d", &version)
	return version, err
}
