// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/internal/catalog"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

const (
	// ContainerServer is the container that serves MCP.
	ContainerServer = "server"

	// GateProved is the readiness gate of probe.gateReadiness.
	GateProved corev1.PodConditionType = "mcp.espalier.dev/proved"

	// DefaultStartupSeconds and DefaultGraceSeconds are the defaults of
	// startupTimeoutSeconds and terminationGracePeriodSeconds.
	DefaultStartupSeconds int32 = 120
	// DefaultGraceSeconds: see DefaultStartupSeconds.
	DefaultGraceSeconds int32 = 60

	// drainSeconds is how long a pod keeps serving after it was told to end,
	// until endpoints everywhere have forgotten it.
	drainSeconds = 5
	home         = "/home/espalier"
)

// TemplateInput is what a pod template depends on.
type TemplateInput struct {
	Server *mcpv1.MCPServer
	// Refs to mount as credentials.
	Refs []catalog.Ref
	// EnvDigest is a keyed digest of what reaches containers as environment
	// from Secrets and ConfigMaps; empty when nothing does.
	EnvDigest string
}

// baseTemplate is the pod template before the user's overlay.
func (o Options) baseTemplate(in TemplateInput) *corev1.PodTemplateSpec {
	server := in.Server
	w := workload(server)
	no := false
	grace := GraceSeconds(server)
	t := &corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: maps.Clone(w.Labels), Annotations: maps.Clone(w.Annotations)},
		Spec: corev1.PodSpec{
			AutomountServiceAccountToken:  &no,
			EnableServiceLinks:            &no,
			TerminationGracePeriodSeconds: &grace,
			ServiceAccountName:            w.ServiceAccountName,
			SecurityContext:               o.podSecurityContext(server),
			NodeSelector:                  w.NodeSelector,
			Tolerations:                   w.Tolerations,
			Affinity:                      w.Affinity,
			TopologySpreadConstraints:     spread(server, w),
			PriorityClassName:             w.PriorityClassName,
			ImagePullSecrets:              o.pullSecrets(w),
			Volumes:                       userVolumes(w),
		},
	}
	if in.EnvDigest != "" {
		setKey(&t.Annotations, mcpv1.AnnotationEnv, in.EnvDigest)
	}
	if p := server.Spec.Probe; p != nil && p.GateReadiness != nil && *p.GateReadiness {
		t.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: GateProved}}
	}
	if Fronted(server) {
		o.addShared(t, in, w)
	} else {
		addContainer(t, server, w)
	}
	return t
}

// GraceSeconds that pods of server have to end.
func GraceSeconds(server *mcpv1.MCPServer) int64 {
	if g := server.Spec.TerminationGracePeriodSeconds; g != nil {
		return int64(*g)
	}
	return int64(DefaultGraceSeconds)
}

// StartupSeconds that pods of server have to start.
func StartupSeconds(server *mcpv1.MCPServer) int32 {
	if s := server.Spec.StartupTimeoutSeconds; s != nil {
		return *s
	}
	return DefaultStartupSeconds
}

func workload(server *mcpv1.MCPServer) *mcpv1.Workload {
	if server.Spec.Workload == nil {
		return &mcpv1.Workload{}
	}
	return server.Spec.Workload
}

func (o Options) podSecurityContext(server *mcpv1.MCPServer) *corev1.PodSecurityContext {
	yes := true
	sc := &corev1.PodSecurityContext{
		RunAsNonRoot:   &yes,
		SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
	// An image of the user's has a user of its own.
	if Fronted(server) && o.RunAsUser != nil {
		user := *o.RunAsUser
		sc.RunAsUser, sc.RunAsGroup, sc.FSGroup = &user, &user, &user
	}
	return sc
}

func (o Options) pullSecrets(w *mcpv1.Workload) []corev1.LocalObjectReference {
	var names []string
	for _, s := range w.ImagePullSecrets {
		names = append(names, s.Name)
	}
	names = append(names, o.ImagePullSecrets...)
	slices.Sort(names)
	var out []corev1.LocalObjectReference
	for _, name := range slices.Compact(names) {
		out = append(out, corev1.LocalObjectReference{Name: name})
	}
	return out
}

// spread gives the user's constraints, or spreads over hosts where possible.
func spread(server *mcpv1.MCPServer, w *mcpv1.Workload) []corev1.TopologySpreadConstraint {
	if w.TopologySpreadConstraints != nil {
		return w.TopologySpreadConstraints
	}
	return []corev1.TopologySpreadConstraint{{
		MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.ScheduleAnyway,
		LabelSelector: &metav1.LabelSelector{MatchLabels: Selector(server)},
		// Pods of an old template must not push new ones to other hosts.
		MatchLabelKeys: []string{"pod-template-hash"},
	}}
}

func userVolumes(w *mcpv1.Workload) []corev1.Volume {
	var out []corev1.Volume
	for _, v := range w.Volumes {
		out = append(out, corev1.Volume{Name: v.Name, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: v.PersistentVolumeClaim, ConfigMap: v.ConfigMap, Secret: v.Secret, EmptyDir: v.EmptyDir,
		}})
	}
	return out
}

func containerSecurityContext() *corev1.SecurityContext {
	yes, no := true, false
	return &corev1.SecurityContext{
		AllowPrivilegeEscalation: &no,
		ReadOnlyRootFilesystem:   &yes,
		Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}
}

func containerResources(w *mcpv1.Workload) corev1.ResourceRequirements {
	if w.Resources != nil {
		return *w.Resources
	}
	return corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("64Mi")},
		Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("512Mi")},
	}
}

// addShared adds the shared server's container.
func (o Options) addShared(t *corev1.PodTemplateSpec, in TemplateInput, w *mcpv1.Workload) {
	server := in.Server
	args := []string{
		"--catalog=" + mountCatalog,
		"--credentials=" + mountCredentials,
		fmt.Sprintf("--listen=:%d", PortMCP),
		fmt.Sprintf("--internal-listen=:%d", PortInternal),
		fmt.Sprintf("--drain-delay=%ds", drainSeconds),
		fmt.Sprintf("--shutdown-timeout=%ds", max(1, GraceSeconds(server)-drainSeconds-2)),
	}
	c := corev1.Container{
		Name: ContainerServer, Image: o.ServerImage, Args: args,
		Env: w.Env, EnvFrom: w.EnvFrom, Resources: containerResources(w),
		Ports: []corev1.ContainerPort{
			{Name: portNameMCP, ContainerPort: PortMCP, Protocol: corev1.ProtocolTCP},
			{Name: portNameInternal, ContainerPort: PortInternal, Protocol: corev1.ProtocolTCP},
		},
		SecurityContext: containerSecurityContext(),
		StartupProbe:    httpProbe("/healthz", 1, StartupSeconds(server)),
		ReadinessProbe:  httpProbe("/readyz", 5, 3),
		LivenessProbe:   livenessProbe(),
		VolumeMounts:    slices.Concat([]corev1.VolumeMount{{Name: VolumeCatalog, MountPath: mountCatalog, ReadOnly: true}}, w.VolumeMounts),
	}
	t.Spec.Volumes = append(t.Spec.Volumes, catalogVolume(server))
	if v := credentialsVolume(in.Refs); v != nil {
		t.Spec.Volumes = append(t.Spec.Volumes, *v)
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: VolumeCredentials, MountPath: mountCredentials, ReadOnly: true})
	}
	volumes, mounts := apiKeyVolumes(in.Refs)
	t.Spec.Volumes = append(t.Spec.Volumes, volumes...)
	c.VolumeMounts = append(c.VolumeMounts, mounts...)
	if server.Spec.Stdio != nil {
		o.wrap(t, &c, server, w)
	}
	c.Env = peersEnv(c.Env, server)
	t.Spec.Containers = []corev1.Container{c}
}

// Variables by which a replica knows itself and finds the others. Flags would
// keep an older server image from starting.
const (
	envPodIP = "ESPALIER_POD_IP"
	envPeers = "ESPALIER_PEERS"
)

// peersEnv adds them. They do not depend on the number of replicas: a scaling
// rolls nothing out.
func peersEnv(env []corev1.EnvVar, server *mcpv1.MCPServer) []corev1.EnvVar {
	own := []corev1.EnvVar{
		{Name: envPodIP, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "status.podIP"}}},
		{Name: envPeers, Value: PeersName(server)},
	}
	env = slices.DeleteFunc(slices.Clone(env), func(e corev1.EnvVar) bool { return e.Name == envPodIP || e.Name == envPeers })
	return append(own, env...)
}

// catalogVolume projects the index and all shards that may come to be, so
// that a catalog which grows needs no new template.
func catalogVolume(server *mcpv1.MCPServer) corev1.Volume {
	yes := true
	mode := int32(0o444)
	projected := &corev1.ProjectedVolumeSource{DefaultMode: &mode}
	for shard := range serverconfig.MaxShards + 1 {
		projected.Sources = append(projected.Sources, corev1.VolumeProjection{ConfigMap: &corev1.ConfigMapProjection{
			LocalObjectReference: corev1.LocalObjectReference{Name: CatalogName(server, shard)}, Optional: &yes,
		}})
	}
	return corev1.Volume{Name: VolumeCatalog, VolumeSource: corev1.VolumeSource{Projected: projected}}
}

// addContainer adds the user's image. Its kubelet probes are TCP: a GET of an
// MCP path means nothing.
func addContainer(t *corev1.PodTemplateSpec, server *mcpv1.MCPServer, w *mcpv1.Workload) {
	src := server.Spec.Container
	port := ContainerPort(server)
	c := corev1.Container{
		Name: ContainerServer, Image: src.Image, Command: src.Command, Args: src.Args,
		Env: withDefaults(w.Env, launcherEnv()), EnvFrom: w.EnvFrom, Resources: containerResources(w),
		Ports:           []corev1.ContainerPort{{Name: portNameMCP, ContainerPort: port, Protocol: corev1.ProtocolTCP}},
		SecurityContext: containerSecurityContext(),
		StartupProbe:    tcpProbe(1, StartupSeconds(server)),
		ReadinessProbe:  tcpProbe(5, 3),
		Lifecycle: &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{
			Sleep: &corev1.SleepAction{Seconds: drainSeconds},
		}},
		VolumeMounts: w.VolumeMounts,
	}
	addWritable(t, &c, w)
	t.Spec.Containers = []corev1.Container{c}
}

// addWritable mounts what programs expect to write to: the root is read-only.
func addWritable(t *corev1.PodTemplateSpec, c *corev1.Container, w *mcpv1.Workload) {
	for _, dir := range []struct{ name, path string }{{volumeTmp, "/tmp"}, {volumeHome, home}} {
		if slices.ContainsFunc(w.VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath == dir.path }) {
			continue
		}
		limit := resource.MustParse("1Gi")
		t.Spec.Volumes = append(t.Spec.Volumes, corev1.Volume{Name: dir.name, VolumeSource: corev1.VolumeSource{
			EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: &limit},
		}})
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: dir.name, MountPath: dir.path})
	}
}

// launcherEnv points launchers at the writable home: the root is read-only,
// and an arbitrary user has no home of its own.
func launcherEnv() []corev1.EnvVar {
	return []corev1.EnvVar{
		{Name: "HOME", Value: home},
		{Name: "TMPDIR", Value: "/tmp"},
		{Name: "XDG_CACHE_HOME", Value: home + "/.cache"},
		{Name: "XDG_CONFIG_HOME", Value: home + "/.config"},
		{Name: "XDG_DATA_HOME", Value: home + "/.local/share"},
		{Name: "npm_config_cache", Value: home + "/.npm"},
		{Name: "UV_CACHE_DIR", Value: home + "/.cache/uv"},
	}
}

// withDefaults puts defaults before env where env does not name them.
func withDefaults(env, defaults []corev1.EnvVar) []corev1.EnvVar {
	var out []corev1.EnvVar
	for _, d := range defaults {
		if !slices.ContainsFunc(env, func(e corev1.EnvVar) bool { return e.Name == d.Name }) {
			out = append(out, d)
		}
	}
	return append(out, env...)
}

func httpProbe(path string, period, threshold int32) *corev1.Probe {
	return &corev1.Probe{
		ProbeHandler:  corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: path, Port: intstr.FromString(portNameInternal), Scheme: corev1.URISchemeHTTP}},
		PeriodSeconds: period, FailureThreshold: threshold, TimeoutSeconds: min(5, period), SuccessThreshold: 1,
	}
}

// livenessProbe ends a process that hangs. One that does not even answer
// /healthz will not drain either, so its end need not be waited for.
func livenessProbe() *corev1.Probe {
	grace := int64(5)
	p := httpProbe("/healthz", 10, 3)
	p.TerminationGracePeriodSeconds = &grace
	return p
}

func tcpProbe(period, threshold int32) *corev1.Probe {
	return &corev1.Probe{
		ProbeHandler:  corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromString(portNameMCP)}},
		PeriodSeconds: period, FailureThreshold: threshold, TimeoutSeconds: min(5, period), SuccessThreshold: 1,
	}
}

func setKey(m *map[string]string, key, value string) {
	if *m == nil {
		*m = map[string]string{}
	}
	(*m)[key] = value
}
