// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
)

// world is one test's namespace with its operator.
type world struct {
	*testing.T
	*operator
	ctx       context.Context
	namespace string
	access    *rest.Config
}

// newWorld makes a namespace and starts an operator with its own RBAC.
func newWorld(t *testing.T) *world { return newWorldAs(t, api.Operator()) }

func newWorldAs(t *testing.T, access *rest.Config) *world {
	t.Helper()
	t.Parallel()
	w := &world{T: t, ctx: context.Background(), access: access}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	must(t, api.Client.Create(w.ctx, namespace))
	w.namespace = namespace.Name
	w.operator = startOperator(t, access, w.namespace)
	return w
}

// restart stops the operator and starts another one, which remembers nothing.
func (w *world) restart() {
	w.Helper()
	w.stop()
	w.operator = startOperator(w.T, w.access, w.namespace)
}

func (w *world) key(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: w.namespace, Name: name}
}

// apply applies the YAML documents as a user does.
func (w *world) apply(documents string) {
	w.Helper()
	for _, document := range strings.Split(documents, "\n---\n") {
		object := &unstructured.Unstructured{}
		must(w.T, yaml.Unmarshal([]byte(document), &object.Object))
		object.SetNamespace(w.namespace)
		if object.GetAPIVersion() == "" {
			object.SetAPIVersion("mcp.espalier.dev/v1alpha1")
		}
		must(w.T, api.Client.Apply(w.ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("user"), client.ForceOwnership))
	}
}

// server applies an MCPServer web with spec.
func (w *world) server(spec string) {
	w.Helper()
	w.apply(fmt.Sprintf("{kind: MCPServer, metadata: {name: web}, spec: %s}", spec))
}

// tool applies an MCPTool of web.
func (w *world) tool(name, spec string) {
	w.Helper()
	w.apply(fmt.Sprintf("{kind: MCPTool, metadata: {name: %s}, spec: {serverRefs: [{name: web}], %s}}", name, spec))
}

func get[T client.Object](w *world, name string, into T) T {
	w.Helper()
	must(w.T, api.Client.Get(w.ctx, w.key(name), into))
	return into
}

func (w *world) web() *mcpv1.MCPServer { w.Helper(); return get(w, "web", &mcpv1.MCPServer{}) }

// exists reports whether an object of this name exists.
func (w *world) exists(name string, of client.Object) bool {
	w.Helper()
	err := api.Client.Get(w.ctx, w.key(name), of)
	if apierrors.IsNotFound(err) {
		return false
	}
	must(w.T, err)
	return true
}

// eventually waits until ok gives an empty string; what it gives otherwise is
// what is still wrong.
func (w *world) eventually(within time.Duration, what string, wrong func() string) {
	w.Helper()
	deadline := time.After(within)
	for {
		problem := wrong()
		if problem == "" {
			return
		}
		select {
		case <-deadline:
			w.Fatalf("%s: %s", what, problem)
		case <-time.After(at):
		}
	}
}

// never watches for a while that what is stays as it is.
func (w *world) never(within time.Duration, what string, is func() string, stays string) {
	w.Helper()
	deadline := time.After(within)
	for {
		if now := is(); now != stays {
			w.Fatalf("%s: %s", what, now)
		}
		select {
		case <-deadline:
			return
		case <-time.After(at):
		}
	}
}

// condition of an object's conditions in one line: STATUS REASON, or "-".
func condition(conditions []metav1.Condition, t string) string {
	c := meta.FindStatusCondition(conditions, t)
	if c == nil {
		return "-"
	}
	return string(c.Status) + " " + c.Reason
}

// becomes waits until the conditions of web are these: TYPE to STATUS REASON.
func (w *world) becomes(want map[string]string) {
	w.Helper()
	w.becomesWithin(soon, want)
}

func (w *world) becomesWithin(within time.Duration, want map[string]string) {
	w.Helper()
	w.eventually(within, "conditions of MCPServer web", func() string {
		server := w.web()
		return differs(server.Status.Conditions, want, server.Status.ObservedGeneration, server.Generation)
	})
}

// toolBecomes waits until the conditions of an MCPTool are these.
func (w *world) toolBecomes(name string, want map[string]string) {
	w.Helper()
	w.registrationBecomes(name, &mcpv1.MCPTool{}, want)
}

// registrationBecomes waits until the conditions of a registration are these;
// it is read into obj.
func (w *world) registrationBecomes(name string, obj mcpv1.Registration, want map[string]string) {
	w.Helper()
	w.eventually(soon, fmt.Sprintf("conditions of %T %s", obj, name), func() string {
		status := get(w, name, obj).GetRegistrationStatus()
		return differs(status.Conditions, want, status.ObservedGeneration, obj.GetGeneration())
	})
}

func differs(conditions []metav1.Condition, want map[string]string, observed, generation int64) string {
	if observed != generation {
		return fmt.Sprintf("generation %d is not observed yet (%d)", generation, observed)
	}
	for t, expected := range want {
		if got := condition(conditions, t); got != expected {
			message := ""
			if c := meta.FindStatusCondition(conditions, t); c != nil {
				message = c.Message
			}
			return fmt.Sprintf("%s is %s (%s), want %s", t, got, message, expected)
		}
	}
	return ""
}

// pass wakes the operator for web and waits until it has made a whole pass
// that began after the wake-up.
func (w *world) pass() {
	w.Helper()
	w.passOver("web")
}

// passOver does that for a server of any name.
func (w *world) passOver(name string) {
	w.Helper()
	key := w.key(name)
	for range 2 {
		before := w.prober.pass(key)
		w.prober.tell(key)
		w.eventually(soon, "a pass", func() string {
			if w.prober.pass(key) > before {
				return ""
			}
			return "none was made"
		})
	}
}

// rest waits until passes write nothing any more.
func (w *world) rest() {
	w.Helper()
	w.eventually(soon, "rest", func() string {
		before := len(w.writes.all())
		for range 4 {
			w.pass()
		}
		if lines := w.writes.all()[before:]; len(lines) > 0 {
			return "still writing: " + strings.Join(lines, "; ")
		}
		return ""
	})
}

// versions are the resourceVersions of all that is the operator's in the
// namespace, by kind and name.
func (w *world) versions() map[string]string {
	w.Helper()
	out := map[string]string{}
	for _, kind := range []string{"apps/v1 Deployment", "v1 Service", "v1 ConfigMap", "policy/v1 PodDisruptionBudget", "networking.k8s.io/v1 NetworkPolicy", "v1 Pod", "mcp.espalier.dev/v1alpha1 MCPServer", "mcp.espalier.dev/v1alpha1 MCPTool", "mcp.espalier.dev/v1alpha1 MCPResource", "mcp.espalier.dev/v1alpha1 MCPPrompt"} {
		version, name, _ := strings.Cut(kind, " ")
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion(version)
		list.SetKind(name + "List")
		must(w.T, api.Client.List(w.ctx, list, client.InNamespace(w.namespace)))
		for _, item := range list.Items {
			out[name+" "+item.GetName()] = item.GetResourceVersion()
		}
	}
	return out
}

// events of the namespace, one line each: TYPE REASON KIND/NAME: NOTE.
func (w *world) events() []string {
	w.Helper()
	var list eventsv1.EventList
	must(w.T, api.Client.List(w.ctx, &list, client.InNamespace(w.namespace)))
	var out []string
	for _, e := range list.Items {
		out = append(out, fmt.Sprintf("%s %s %s/%s: %s", e.Type, e.Reason, e.Regarding.Kind, e.Regarding.Name, e.Note))
	}
	slices.Sort(out)
	return out
}

// told waits for an event that begins so.
func (w *world) told(prefix string) {
	w.Helper()
	w.eventually(soon, "event "+prefix, func() string {
		all := w.events()
		if slices.ContainsFunc(all, func(line string) bool { return strings.HasPrefix(line, prefix) }) {
			return ""
		}
		return "there are only: " + strings.Join(all, "\n")
	})
}
