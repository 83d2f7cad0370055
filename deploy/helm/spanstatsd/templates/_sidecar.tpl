{{- /*
For the chart of an application that has this one as a dependency, with mode
none. Each takes the scope of this chart: .Subcharts.spanstatsd

  initContainers (or containers, first, if sidecar.native is false):
    include "spanstatsd.sidecar.container"
  volumes:        include "spanstatsd.sidecar.volumes"
  volumeMounts:   include "spanstatsd.sidecar.applicationMounts"
  env:            include "spanstatsd.sidecar.applicationEnv"
  pod labels:     include "spanstatsd.sidecar.labels"
  annotations:    include "spanstatsd.sidecar.annotations", where Prometheus goes by them
*/ -}}

{{- define "spanstatsd.sidecar.container" -}}
- name: spanstatsd
  {{- if .Values.sidecar.native }}
  restartPolicy: Always
  {{- else }}
  {{- if .Values.web.secret }}
    {{- $url := false }}
    {{- range .Values.extraEnv }}{{ if eq .name "SPANSTATSD_URL" }}{{ $url = true }}{{ end }}{{ end }}
    {{- if not $url }}{{ fail (printf "web.secret with sidecar.native false: the hooks ask the daemon too; give extraEnv a SPANSTATSD_URL, https://user:password@127.0.0.1:%s, and a SPANSTATSD_CA_FILE" (include "spanstatsd.port" .)) }}{{ end }}
  {{- end }}
  lifecycle:
    postStart:
      exec:
        command: [/spanstatsd, wait, ready, --at-most=30s]
    preStop:
      exec:
        command: [/spanstatsd, wait, idle, --at-most=20s]
  {{- end }}
  {{- include "spanstatsd.container" . | nindent 2 }}
  volumeMounts:
    {{- include "spanstatsd.mounts" . | nindent 4 }}
    - name: spanstatsd-no-token
      mountPath: /var/run/secrets/kubernetes.io/serviceaccount
      readOnly: true
{{- end -}}

{{- define "spanstatsd.sidecar.volumes" -}}
- name: spanstatsd
  emptyDir:
    sizeLimit: 4Mi
- name: spanstatsd-no-token
  emptyDir:
    sizeLimit: 1Mi
{{- include "spanstatsd.volumes" . }}
{{- end -}}

{{- define "spanstatsd.sidecar.applicationMounts" -}}
- name: spanstatsd
  mountPath: {{ include "spanstatsd.directory" . }}
  readOnly: true
{{- end -}}

{{- define "spanstatsd.sidecar.applicationEnv" -}}
- name: SPANSTATSD_SOCKET
  value: {{ include "spanstatsd.socket" . }}
{{- if .Values.apm.enabled }}
- name: DD_TRACE_AGENT_URL
  value: unix://{{ include "spanstatsd.directory" . }}/apm.socket
{{- end }}
{{- if .Values.otlpIn.enabled }}
- name: OTEL_EXPORTER_OTLP_ENDPOINT
  value: http://127.0.0.1:4318
{{- end }}
{{- end -}}

{{- define "spanstatsd.sidecar.labels" -}}
spanstatsd: sidecar
{{- end -}}

{{- define "spanstatsd.sidecar.annotations" -}}
{{ include "spanstatsd.annotations" . }}
{{- end -}}
