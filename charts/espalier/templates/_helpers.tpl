{{/* Names of objects begin with this. */}}
{{- define "espalier.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 46 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 46 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 46 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "espalier.manager" -}}
{{ include "espalier.fullname" . }}-manager
{{- end -}}

{{- define "espalier.serviceAccount" -}}
{{- if .Values.serviceAccount.name -}}
{{ .Values.serviceAccount.name }}
{{- else if .Values.serviceAccount.create -}}
{{ include "espalier.manager" . }}
{{- else -}}
default
{{- end -}}
{{- end -}}

{{/* Labels of every object. */}}
{{- define "espalier.labels" -}}
app.kubernetes.io/name: espalier
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/*
Labels that select the operator's pods. They are those of config/, and must
never change: a Deployment's selector is immutable. An installation by
kustomize becomes one by Helm with --take-ownership.
*/}}
{{- define "espalier.selector" -}}
app.kubernetes.io/name: espalier
control-plane: controller-manager
{{- end -}}

{{/* An image's reference: (list .Values.image .Chart.AppVersion IMAGE). */}}
{{- define "espalier.image" -}}
{{- $common := index . 0 -}}
{{- $image := index . 2 -}}
{{ $common.registry | trimSuffix "/" }}/{{ $image.repository }}:{{ coalesce $image.tag $common.tag (index . 1) }}
{{- with $image.digest }}@{{ . }}{{ end -}}
{{- end -}}

{{/* A RoleBinding's or ClusterRoleBinding's subject: the operator. */}}
{{- define "espalier.subjects" -}}
subjects:
- kind: ServiceAccount
  name: {{ include "espalier.serviceAccount" . }}
  namespace: {{ .Release.Namespace }}
{{- end -}}

{{/* Rules of config/rbac/role.yaml that a Role can hold, as a YAML list. */}}
{{- define "espalier.namespacedRules" -}}
{{- $rules := list -}}
{{- range .Files.Get "files/rbac/role.yaml" | fromYamlArray -}}
{{- if not (or .nonResourceURLs (has "leases" (.resources | default list))) -}}
{{- $rules = append $rules . -}}
{{- end -}}
{{- end -}}
{{ toYaml $rules }}
{{- end -}}

{{/* Those that only a ClusterRole can hold. */}}
{{- define "espalier.clusterRules" -}}
{{- $rules := list -}}
{{- range .Files.Get "files/rbac/role.yaml" | fromYamlArray -}}
{{- if or .nonResourceURLs (has "leases" (.resources | default list)) -}}
{{- $rules = append $rules . -}}
{{- end -}}
{{- end -}}
{{ toYaml $rules }}
{{- end -}}

{{/* Settings that could not work together are refused before anything is applied. */}}
{{- define "espalier.check" -}}
{{- if and .Values.rbac.create (not .Values.rbac.clusterScoped) -}}
{{- if not .Values.watchNamespaces -}}
{{- fail "rbac.clusterScoped=false needs watchNamespaces: without a ClusterRole the operator can only work in namespaces that are named" -}}
{{- end -}}
{{- if and .Values.metrics.enabled .Values.metrics.secure -}}
{{- fail "rbac.clusterScoped=false needs metrics.secure=false or metrics.enabled=false: who may scrape is asked by TokenReviews and SubjectAccessReviews, which need a ClusterRole" -}}
{{- end -}}
{{- end -}}
{{- if and .Values.metrics.serviceMonitor.enabled (not .Values.metrics.enabled) -}}
{{- fail "metrics.serviceMonitor.enabled needs metrics.enabled" -}}
{{- end -}}
{{- end -}}
