{{- /* What every daemon of this chart has in common, whatever runs it. */ -}}

{{- define "spanstatsd.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{- define "spanstatsd.name" -}}
{{ .Values.nameOverride | default .Release.Name }}
{{- end -}}

{{- define "spanstatsd.labels" -}}
{{- with .Values.extraLabels }}
{{- toYaml . }}
{{ end -}}
app.kubernetes.io/name: spanstatsd
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{- /* Where the daemon listens; what it is told in config, all else follows. */ -}}

{{- define "spanstatsd.socket" -}}
{{ get .Values.config "socket" | default (printf "%s/spans.sock" .Values.socket.directory) }}
{{- end -}}

{{- define "spanstatsd.directory" -}}
{{ dir (include "spanstatsd.socket" .) }}
{{- end -}}

{{- define "spanstatsd.port" -}}
{{ regexFind "[0-9]+$" (get .Values.config "http-addr" | default ":9126") }}
{{- end -}}

{{- /* One place for each: what the chart sets from a value of its own stands only there. */ -}}

{{- define "spanstatsd.oneplace" -}}
{{- $own := dict "agent-url" "agent.url" "prometheus" "prometheus.enabled" "socket-mode" "socket.mode" "apm-socket" "apm.enabled" "otlp-metrics-endpoint" "otlp.endpoint" "otlp-addr" "otlpIn.enabled" "otlp-socket" "otlpIn.enabled" "otlp-forward" "otlpIn.forward" "otlp-keep" "otlpIn.keep" "web-config-file" "web.secret" }}
{{- range $flag, $value := $own }}
{{- if hasKey $.Values.config $flag }}{{ fail (printf "config.%s: set %s instead, which mounts, policies and probes follow" $flag $value) }}{{ end }}
{{- end }}
{{- if and .Values.otlpIn.forward (not .Values.otlpIn.enabled) }}{{ fail "otlpIn.forward: set otlpIn.enabled too, or nothing comes that could go there" }}{{ end }}
{{- if and (toString .Values.otlpIn.keep) (not .Values.otlpIn.forward) }}{{ fail "otlpIn.keep: set otlpIn.forward too, or no trace goes on" }}{{ end }}
{{- if and (eq .Values.agent.url "off") .Values.apm.enabled }}{{ fail "apm.enabled: traces are handed on to the agent, and agent.url says that there is none" }}{{ end }}
{{- $follows := merge (dict "socket" "config.socket" "http-addr" "config.http-addr") $own }}
{{- range .Values.extraEnv }}
{{- $flag := .name | trimPrefix "SPANSTATSD_" | lower | replace "_" "-" }}
{{- if and (hasPrefix "SPANSTATSD_" .name) (hasKey $follows $flag) }}{{ fail (printf "extraEnv %s: set %s instead, which ports, mounts and probes follow" .name (get $follows $flag)) }}{{ end }}
{{- end }}
{{- end -}}

{{- define "spanstatsd.agentSocketDirectory" -}}
{{- if hasPrefix "unix://" .Values.agent.url -}}
{{ dir (trimPrefix "unix://" .Values.agent.url) }}
{{- end -}}
{{- end -}}

{{- /* The agent's port, "" where there is no agent or one behind a socket. */ -}}

{{- define "spanstatsd.agentPort" -}}
{{- if not (or (eq .Values.agent.url "off") (hasPrefix "unix://" .Values.agent.url)) -}}
{{ regexFind ":[0-9]+$" (trimSuffix "/" .Values.agent.url) | trimPrefix ":" | default "8126" }}
{{- end -}}
{{- end -}}

{{- /* The name of the port where request metrics are scraped, "" where they are not. */ -}}

{{- define "spanstatsd.scraped" -}}
{{- if or .Values.prometheus.enabled (and (eq .Values.agent.url "off") (not .Values.otlp.endpoint)) -}}
{{ ternary "spans" "spanstatsd" (ne "" (include "spanstatsd.spansPort" .)) }}
{{- end -}}
{{- end -}}

{{- define "spanstatsd.spansPort" -}}
{{ regexFind "[0-9]+$" (get .Values.config "prometheus-addr" | default "") }}
{{- end -}}

{{- define "spanstatsd.otlpPort" -}}
{{- $standard := ternary "443" "80" (hasPrefix "https:" .Values.otlp.endpoint) -}}
{{ regexFind ":[0-9]+$" (get (urlParse .Values.otlp.endpoint) "host") | trimPrefix ":" | default $standard }}
{{- end -}}

{{- /* The port that OTLP goes on to, "" where it does not. */ -}}

{{- define "spanstatsd.forwardPort" -}}
{{- with .Values.otlpIn.forward -}}
{{- $url := urlParse . -}}
{{- $standard := get (dict "http" "4318" "https" "443" "grpc" "4317" "grpcs" "443") (get $url "scheme") -}}
{{ regexFind ":[0-9]+$" (get $url "host") | trimPrefix ":" | default $standard }}
{{- end -}}
{{- end -}}

{{- define "spanstatsd.annotations" -}}
prometheus.io/scrape: "true"
prometheus.io/port: {{ include "spanstatsd.port" . | quote }}
prometheus.io/scheme: {{ include "spanstatsd.scheme" . | lower }}
{{- end -}}

{{- define "spanstatsd.scheme" -}}
{{- if and .Values.web.secret .Values.web.tls }}HTTPS{{ else }}HTTP{{ end -}}
{{- end -}}

{{- define "spanstatsd.container" -}}
{{- include "spanstatsd.oneplace" . -}}
image: {{ include "spanstatsd.image" . }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
args: [run]
env:
  - name: SPANSTATSD_SOCKET
    value: {{ include "spanstatsd.socket" . }}
  - name: SPANSTATSD_SOCKET_MODE
    value: {{ .Values.socket.mode | quote }}
  {{- if .Values.apm.enabled }}
  - name: SPANSTATSD_APM_SOCKET
    value: {{ include "spanstatsd.directory" . }}/apm.socket
  {{- end }}
  {{- if .Values.otlpIn.enabled }}
  {{- if eq .Values.mode "node" }}
  - name: SPANSTATSD_OTLP_SOCKET
    value: {{ include "spanstatsd.directory" . }}/otlp.socket
  {{- else }}
  - name: SPANSTATSD_OTLP_ADDR
    value: 127.0.0.1:4318
  {{- end }}
  {{- with .Values.otlpIn.forward }}
  - name: SPANSTATSD_OTLP_FORWARD
    value: {{ . | quote }}
  {{- end }}
  {{- with toString .Values.otlpIn.keep }}
  - name: SPANSTATSD_OTLP_KEEP
    value: {{ . | quote }}
  {{- end }}
  {{- end }}
  {{- if .Values.web.secret }}
  - name: SPANSTATSD_WEB_CONFIG_FILE
    value: /etc/spanstatsd/web-config.yml
  {{- end }}
  {{- if .Values.prometheus.enabled }}
  - name: SPANSTATSD_PROMETHEUS
    value: "on"
  {{- end }}
  {{- if eq .Values.agent.url "off" }}
  - name: SPANSTATSD_AGENT_URL
    value: "off"
  {{- else if .Values.agent.url }}
  - name: DD_TRACE_AGENT_URL
    value: {{ .Values.agent.url | quote }}
  {{- else }}
  - name: DD_AGENT_HOST
    valueFrom:
      fieldRef:
        fieldPath: status.hostIP
  {{- end }}
  {{- with .Values.otlp.endpoint }}
  - name: SPANSTATSD_OTLP_METRICS_ENDPOINT
    value: {{ . | quote }}
  {{- end }}
  {{- range $flag, $value := omit .Values.config "socket" }}
  - name: SPANSTATSD_{{ $flag | upper | replace "-" "_" }}
    {{- if kindIs "float64" $value }}
    value: {{ $value | int64 | quote }}
    {{- else }}
    value: {{ $value | toString | quote }}
    {{- end }}
  {{- end }}
  {{- with .Values.extraEnv }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
ports:
  - name: spanstatsd
    containerPort: {{ include "spanstatsd.port" . }}
  {{- with include "spanstatsd.spansPort" . }}
  - name: spans
    containerPort: {{ . }}
  {{- end }}
startupProbe:
  httpGet:
    path: /readyz
    port: spanstatsd
    scheme: {{ include "spanstatsd.scheme" . }}
  periodSeconds: 1
  failureThreshold: 30
livenessProbe:
  httpGet:
    path: /livez
    port: spanstatsd
    scheme: {{ include "spanstatsd.scheme" . }}
  periodSeconds: 10
  timeoutSeconds: 2
resources:
  {{- toYaml .Values.resources | nindent 2 }}
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  readOnlyRootFilesystem: true
  allowPrivilegeEscalation: false
  capabilities:
    drop: [ALL]
  seccompProfile:
    type: RuntimeDefault
{{- end -}}

{{- define "spanstatsd.mounts" -}}
- name: spanstatsd
  mountPath: {{ include "spanstatsd.directory" . }}
{{- with include "spanstatsd.agentSocketDirectory" . }}
- name: spanstatsd-agent
  mountPath: {{ . }}
  readOnly: true
{{- end }}
{{- if .Values.web.secret }}
- name: spanstatsd-web
  mountPath: /etc/spanstatsd
  readOnly: true
{{- end }}
{{- with .Values.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "spanstatsd.volumes" -}}
{{- with include "spanstatsd.agentSocketDirectory" . }}
- name: spanstatsd-agent
  hostPath:
    path: {{ . }}
    type: DirectoryOrCreate
{{- end }}
{{- with .Values.web.secret }}
- name: spanstatsd-web
  secret:
    secretName: {{ . }}
{{- end }}
{{- with .Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- /* The service account of the daemons of the nodes, "" for the namespace's own. */ -}}

{{- define "spanstatsd.serviceAccount" -}}
{{ .Values.serviceAccount.name | default (ternary (include "spanstatsd.name" .) "" .Values.serviceAccount.create) }}
{{- end -}}
