{{/* The operator's flags. What equals the operator's own default is not said. */}}
{{- define "espalier.args" -}}
- --leader-elect
- --server-image={{ include "espalier.image" (list .Values.image .Chart.AppVersion .Values.servers.image) }}
- --namespace=$(POD_NAMESPACE)
{{- with .Values.servers.runAsUser }}
- --run-as-user={{ if kindIs "string" . }}{{ . }}{{ else }}{{ int64 . }}{{ end }}
{{- else }}
- --run-as-user=
{{- end }}
- --pod-security={{ .Values.servers.podSecurity }}
{{- range .Values.watchNamespaces }}
- --watch-namespace={{ . }}
{{- end }}
{{- range .Values.servers.imagePullSecrets }}
- --image-pull-secret={{ . }}
{{- end }}
{{- range $from, $to := .Values.servers.registryMirrors }}
- --registry-mirror={{ $from }}={{ $to }}
{{- end }}
{{- if not .Values.metrics.enabled }}
- --metrics-bind-address=0
{{- else }}
{{- if ne (int .Values.metrics.port) 8443 }}
- --metrics-bind-address=:{{ .Values.metrics.port }}
{{- end }}
{{- if not .Values.metrics.secure }}
- --metrics-secure=false
{{- end }}
{{- end }}
{{- with .Values.manager }}
{{- with .logging.level }}
- --zap-log-level={{ . }}
{{- end }}
{{- with .logging.format }}
- --zap-encoder={{ . }}
{{- end }}
{{- with int .concurrency }}
- --concurrency={{ . }}
{{- end }}
{{- with .kubeAPI.qps }}
- --kube-api-qps={{ . }}
{{- end }}
{{- with int .kubeAPI.burst }}
- --kube-api-burst={{ . }}
{{- end }}
{{- with int .probe.workers }}
- --probe-workers={{ . }}
{{- end }}
{{- with .probe.rate }}
- --probe-rate={{ . }}
{{- end }}
{{- with .probe.denyCIDRs }}
- --probe-deny-cidrs={{ join "," . }}
{{- end }}
{{- range .extraArgs }}
- {{ . | quote }}
{{- end }}
{{- end }}
{{- end -}}
