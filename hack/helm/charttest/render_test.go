// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package charttest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// root of the repository.
var root = filepath.Join("..", "..", "..")

// release is how the chart is rendered unless a test says otherwise: under
// the names that config/default gives.
var release = common.ReleaseOptions{Name: "espalier", Namespace: "espalier-system", IsInstall: true, Revision: 1}

// objects by "Kind namespace/name".
type objects map[string]*unstructured.Unstructured

func load(t *testing.T) *chart.Chart {
	t.Helper()
	loaded, err := loader.Load(filepath.Join(root, "charts", "espalier"))
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}

// tryRender renders the chart with values, written as YAML.
func tryRender(t *testing.T, options common.ReleaseOptions, values string) (objects, error) {
	t.Helper()
	return tryRenderOf(t, load(t), options, values)
}

func tryRenderOf(t *testing.T, loaded *chart.Chart, options common.ReleaseOptions, values string) (objects, error) {
	t.Helper()
	given := map[string]any{}
	if err := yaml.Unmarshal([]byte(values), &given); err != nil {
		t.Fatal(err)
	}
	all, err := util.ToRenderValues(loaded, given, options, common.DefaultCapabilities)
	if err != nil {
		return nil, err
	}
	files, err := engine.Render(loaded, all)
	if err != nil {
		return nil, err
	}
	out := objects{}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if !strings.HasSuffix(name, ".yaml") {
			continue
		}
		if err := out.read(files[name]); err != nil {
			return nil, fmt.Errorf("%s: %w\n%s", name, err, files[name])
		}
	}
	return out, nil
}

func render(t *testing.T, values string) objects {
	t.Helper()
	out, err := tryRender(t, release, values)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// read adds the objects of a text. One that is there already is an error.
func (o objects) read(text string) error {
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader([]byte(text)), 4096)
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(&object.Object)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if len(object.Object) == 0 {
			continue
		}
		id := fmt.Sprintf("%s %s/%s", object.GetKind(), object.GetNamespace(), object.GetName())
		if o[id] != nil {
			return fmt.Errorf("%s is there twice", id)
		}
		o[id] = object
	}
}

// ids in order.
func (o objects) ids() []string { return slices.Sorted(maps.Keys(o)) }

// get an object that must be there.
func (o objects) get(t *testing.T, id string) *unstructured.Unstructured {
	t.Helper()
	if o[id] == nil {
		t.Fatalf("no %s; there are %q", id, o.ids())
	}
	return o[id]
}

// field of an object; nil where it is not.
func field(t *testing.T, object *unstructured.Unstructured, path ...string) any {
	t.Helper()
	value, _, err := unstructured.NestedFieldNoCopy(object.Object, path...)
	if err != nil {
		t.Fatal(err)
	}
	return value
}

func readFile(t *testing.T, elements ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(append([]string{root}, elements...)...))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

const manager = "Deployment espalier-system/espalier-manager"

// container of the operator.
func container(t *testing.T, o objects) map[string]any {
	t.Helper()
	list, ok := field(t, o.get(t, manager), "spec", "template", "spec", "containers").([]any)
	if !ok || len(list) != 1 {
		t.Fatalf("containers are %v", list)
	}
	return list[0].(map[string]any)
}

func args(t *testing.T, o objects) []string {
	t.Helper()
	var out []string
	for _, arg := range container(t, o)["args"].([]any) {
		out = append(out, arg.(string))
	}
	return out
}
