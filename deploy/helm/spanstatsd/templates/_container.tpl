{{- /* What every daemon of this chart has in common, whatever runs it. */ -}}

{{- define "spanstatsd.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{- define "spanstatsd.labels" -}}
app.kubernetes.io/name: spanstatsd
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{- define "spanstatsd.agentSocketDirectory" -}}
{{- if hasPrefix "unix://" .Values.agent.url -}}
{{ dir (trimPrefix "unix://" .Values.agent.url) }}
{{- end -}}
{{- end -}}

{{- define "spanstatsd.scheme" -}}
{{- if and .Values.web.secret .Values.web.tls }}HTTPS{{ else }}HTTP{{ end -}}
{{- end -}}

{{- define "spanstatsd.container" -}}
image: {{ include "spanstatsd.image" . }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
args: [run]
env:
  - name: SPANSTATSD_SOCKET
    value: {{ .Values.socket.directory }}/spans.sock
  - name: SPANSTATSD_SOCKET_MODE
    value: {{ .Values.socket.mode | quote }}
  {{- if .Values.apm.enabled }}
  - name: SPANSTATSD_APM_SOCKET
    value: {{ .Values.socket.directory }}/apm.socket
  {{- end }}
  {{- if .Values.web.secret }}
  - name: SPANSTATSD_WEB_CONFIG_FILE
    value: /etc/spanstatsd/web-config.yml
  {{- end }}
  {{- if .Values.agent.url }}
  - name: DD_TRACE_AGENT_URL
    value: {{ .Values.agent.url | quote }}
  {{- else }}
  - name: DD_AGENT_HOST
    valueFrom:
      fieldRef:
        fieldPath: status.hostIP
  {{- end }}
  {{- range $flag, $value := .Values.config }}
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
    containerPort: 9126
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
  mountPath: {{ .Values.socket.directory }}
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
{{- end -}}
