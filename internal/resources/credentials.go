// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"fmt"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/espalier-dev/espalier/internal/catalog"
)

// Volumes that Espalier adds to pods. Users cannot name one so.
const (
	VolumeCatalog     = "espalier-catalog"
	VolumeCredentials = "espalier-credentials"
	VolumeAPIKeys     = "espalier-api-keys"
	volumeTmp         = "espalier-tmp"
	volumeHome        = "espalier-home"

	// Where the server finds them.
	mountCatalog     = "/etc/espalier/catalog"
	mountCredentials = "/etc/espalier/credentials"
	mountAPIKeys     = "/etc/espalier/api-keys"
)

// Mounts says which keys of Secrets and ConfigMaps pods mount.
type Mounts []catalog.Ref

// MountsOf reads what the pods of spec mount as credentials.
func MountsOf(spec *corev1.PodSpec) Mounts {
	var out Mounts
	for _, v := range spec.Volumes {
		if isAPIKeys(v.Name) && v.Secret != nil {
			out = append(out, catalog.Ref{Kind: catalog.RefSecret, Name: v.Secret.SecretName})
		}
		if v.Name != VolumeCredentials || v.Projected == nil {
			continue
		}
		for _, s := range v.Projected.Sources {
			switch {
			case s.Secret != nil:
				out = append(out, refsOf(catalog.RefSecret, s.Secret.Name, s.Secret.Items)...)
			case s.ConfigMap != nil:
				out = append(out, refsOf(catalog.RefConfigMap, s.ConfigMap.Name, s.ConfigMap.Items)...)
			}
		}
	}
	return Mounts(catalog.SortRefs(out))
}

func refsOf(kind catalog.RefKind, name string, items []corev1.KeyToPath) []catalog.Ref {
	out := make([]catalog.Ref, 0, len(items))
	for _, item := range items {
		out = append(out, catalog.Ref{Kind: kind, Name: name, Key: item.Key})
	}
	return out
}

// Covers reports whether every one of refs is mounted.
func (m Mounts) Covers(refs []catalog.Ref) bool {
	for _, r := range refs {
		if _, found := slices.BinarySearchFunc(m, r, catalog.CompareRefs); !found {
			return false
		}
	}
	return true
}

// credentialsVolume projects exactly the named keys. Sources are optional: a
// missing Secret harms only the tool that names it, never the pod. There is
// no volume without refs, so that the first one is a change of the template.
func credentialsVolume(refs []catalog.Ref) *corev1.Volume {
	refs = slices.DeleteFunc(slices.Clone(refs), func(r catalog.Ref) bool { return r.Key == "" })
	if len(refs) == 0 {
		return nil
	}
	yes := true
	mode := int32(0o440)
	projected := &corev1.ProjectedVolumeSource{DefaultMode: &mode}
	for _, r := range refs {
		item := corev1.KeyToPath{Key: r.Key, Path: r.Path()}
		last := len(projected.Sources) - 1
		switch {
		case r.Kind == catalog.RefSecret:
			if last >= 0 && projected.Sources[last].Secret != nil && projected.Sources[last].Secret.Name == r.Name {
				projected.Sources[last].Secret.Items = append(projected.Sources[last].Secret.Items, item)
				continue
			}
			projected.Sources = append(projected.Sources, corev1.VolumeProjection{Secret: &corev1.SecretProjection{
				LocalObjectReference: corev1.LocalObjectReference{Name: r.Name}, Items: []corev1.KeyToPath{item}, Optional: &yes,
			}})
		default:
			if last >= 0 && projected.Sources[last].ConfigMap != nil && projected.Sources[last].ConfigMap.Name == r.Name {
				projected.Sources[last].ConfigMap.Items = append(projected.Sources[last].ConfigMap.Items, item)
				continue
			}
			projected.Sources = append(projected.Sources, corev1.VolumeProjection{ConfigMap: &corev1.ConfigMapProjection{
				LocalObjectReference: corev1.LocalObjectReference{Name: r.Name}, Items: []corev1.KeyToPath{item}, Optional: &yes,
			}})
		}
	}
	return &corev1.Volume{Name: VolumeCredentials, VolumeSource: corev1.VolumeSource{Projected: projected}}
}

// IsCredentials reports whether a volume is one of those that MountsOf reads.
func IsCredentials(volume string) bool {
	return volume == VolumeCredentials || isAPIKeys(volume)
}

func isAPIKeys(volume string) bool {
	return volume == VolumeAPIKeys || strings.HasPrefix(volume, VolumeAPIKeys+"-")
}

// apiKeyVolumes mount whole Secrets, each in a folder of its name: a server
// whose catalog already names another Secret must not take this one's keys for
// that one's. A projected volume would put all keys side by side at its root.
func apiKeyVolumes(refs []catalog.Ref) (volumes []corev1.Volume, mounts []corev1.VolumeMount) {
	for _, r := range refs {
		if r.Key != "" || r.Kind != catalog.RefSecret {
			continue
		}
		name := VolumeAPIKeys
		if n := len(volumes); n > 0 {
			name = fmt.Sprintf("%s-%d", VolumeAPIKeys, n)
		}
		yes := true
		mode := int32(0o440)
		volumes = append(volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
			Secret: &corev1.SecretVolumeSource{SecretName: r.Name, DefaultMode: &mode, Optional: &yes},
		}})
		mounts = append(mounts, corev1.VolumeMount{Name: name, MountPath: path.Join(mountAPIKeys, r.Name), ReadOnly: true})
	}
	return volumes, mounts
}
