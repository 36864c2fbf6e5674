// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/test/apiserver"
)

// gone is by when all that was removed is gone (C04).
const gone = 60 * time.Second

// removal is a namespace with a server, its tools and its children, on an API
// server of its own with Kubernetes' own collectors.
type removal struct {
	*world
	server *apiserver.Server
}

func newRemoval(t *testing.T, server *apiserver.Server) *removal {
	t.Helper()
	r := &removal{world: &world{T: t, ctx: t.Context(), access: server.Operator()}, server: server}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "removal-"}}
	must(t, server.Client.Create(r.ctx, namespace))
	r.namespace = namespace.Name
	r.operator = startOperator(t, r.access, r.namespace)
	must(t, server.Client.Create(r.ctx, &mcpv1.MCPServer{ObjectMeta: r.meta("web"), Spec: mcpv1.MCPServerSpec{Type: mcpv1.TypeTools}}))
	must(t, server.Client.Create(r.ctx, &mcpv1.MCPTool{ObjectMeta: r.meta("alpha"), Spec: mcpv1.MCPToolSpec{
		RegistrationSpec: mcpv1.RegistrationSpec{ServerRefs: []mcpv1.ServerRef{{Name: "web"}}}, Expression: &mcpv1.Result{Text: "'a'"},
	}}))
	r.eventually(soon, "children", func() string {
		if n := len(r.left()); n != 3 {
			return fmt.Sprintf("there are %d", n)
		}
		return ""
	})
	return r
}

func (r *removal) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: r.namespace}
}

// left are the children that there are.
func (r *removal) left() []string {
	r.Helper()
	var out []string
	for _, list := range []client.ObjectList{&appsv1.DeploymentList{}, &corev1.ServiceList{}, &corev1.ConfigMapList{}} {
		must(r.T, r.server.Client.List(r.ctx, list, client.InNamespace(r.namespace), client.HasLabels{mcpv1.LabelServer}))
		items, err := named(list)
		must(r.T, err)
		out = append(out, items...)
	}
	return out
}

func named(list client.ObjectList) ([]string, error) {
	var out []string
	switch l := list.(type) {
	case *appsv1.DeploymentList:
		for _, o := range l.Items {
			out = append(out, "Deployment "+o.Name)
		}
	case *corev1.ServiceList:
		for _, o := range l.Items {
			out = append(out, "Service "+o.Name)
		}
	case *corev1.ConfigMapList:
		for _, o := range l.Items {
			out = append(out, "ConfigMap "+o.Name)
		}
	default:
		return nil, fmt.Errorf("a list of %T", list)
	}
	return out, nil
}

func (r *removal) delete(obj client.Object) {
	r.Helper()
	must(r.T, r.server.Client.Delete(r.ctx, obj, client.PropagationPolicy(metav1.DeletePropagationBackground)))
}

func (r *removal) childrenGo() {
	r.Helper()
	r.eventually(gone, "the children's end", func() string { return strings.Join(r.left(), ", ") })
}

func (r *removal) ends(obj client.Object) {
	r.Helper()
	r.eventually(gone, fmt.Sprintf("the end of %T %s", obj, obj.GetName()), func() string {
		err := r.server.Client.Get(r.ctx, client.ObjectKeyFromObject(obj), obj)
		if apierrors.IsNotFound(err) {
			return ""
		}
		return fmt.Sprintf("%v, finalizers %v", err, obj.GetFinalizers())
	})
}

func (r *removal) namespaceEnds() {
	r.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: r.namespace}}
	r.delete(namespace)
	r.ends(namespace)
}

// TestRemoval: in whatever order it is removed, nothing hangs and nothing is
// left.
func TestRemoval(t *testing.T) {
	t.Parallel()
	server, err := apiserver.Start()
	must(t, err)
	t.Cleanup(func() { must(t, server.Stop()) })
	server.StartControllers(t)
	t.Run("the servers first", func(t *testing.T) {
		r := newRemoval(t, server)
		r.delete(&mcpv1.MCPServer{ObjectMeta: r.meta("web")})
		r.childrenGo()
		r.stop()
		r.namespaceEnds()
	})
	t.Run("the operator first", func(t *testing.T) {
		r := newRemoval(t, server)
		r.stop()
		r.delete(&mcpv1.MCPServer{ObjectMeta: r.meta("web")})
		r.childrenGo()
		r.delete(&mcpv1.MCPTool{ObjectMeta: r.meta("alpha")})
		r.namespaceEnds()
	})
	t.Run("the namespace first", func(t *testing.T) {
		r := newRemoval(t, server)
		r.namespaceEnds()
	})
	t.Run("the CRDs first", func(t *testing.T) {
		r := newRemoval(t, server)
		for _, plural := range []string{"mcpservers", "mcptools", "mcpresources", "mcpprompts"} {
			crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: plural + "." + mcpv1.GroupVersion.Group}}
			r.delete(crd)
			r.ends(crd)
		}
		r.childrenGo()
		r.stop()
		r.namespaceEnds()
	})
}
