{{- /* What the policy that puts the daemon into pods is written with. */ -}}

{{- /* Whether this release runs a daemon on each node: "" where it does not. */ -}}

{{- define "spanstatsd.runsOnNodes" -}}
{{- if and (eq .Values.mode "node") (not .Values.inject.enabled) }}yes{{ end -}}
{{- end -}}

{{- /*
A value as CEL. Arguments: the value, the type that an object of it has there, how deep the lines of
lists of objects are indented. Maps of the API whose keys are anybody's are maps of CEL too.
*/ -}}

{{- define "spanstatsd.cel" -}}
{{- $type := .type -}}
{{- if kindIs "map" .value -}}
{{ $type }}{
{{- $first := true -}}
{{- range $key, $value := .value -}}
{{- if not $first }}, {{ end }}{{ $first = false -}}
{{ $key }}: {{ if has $key (list "limits" "requests") }}{{ include "spanstatsd.inject.quantities" $value }}{{ else }}
{{- include "spanstatsd.cel" (dict "value" $value "type" (printf "%s.%s" $type $key) "indent" "") }}{{ end -}}
{{- end -}}
}
{{- else if kindIs "slice" .value -}}
[
{{- $first := true -}}
{{- range .value -}}
{{- if not $first }}, {{ end }}{{ $first = false -}}
{{ include "spanstatsd.cel" (dict "value" . "type" $type) }}
{{- end -}}
]
{{- else -}}
{{ toJson .value }}
{{- end -}}
{{- end -}}

{{- /* The sidecar's container with the native socket only: each pod chooses its other receivers. */ -}}

{{- define "spanstatsd.inject.container" -}}
{{- $values := mergeOverwrite (deepCopy .Values) (dict "mode" "none" "apm" (dict "enabled" false) "otlpIn" (dict "enabled" false "forward" "" "keep" "") "sidecar" (dict "native" true)) -}}
{{- include "spanstatsd.sidecar.container" (dict "Values" $values "Chart" .Chart "Release" .Release) -}}
{{- end -}}

{{- /* What OTLP's door has besides its address. */ -}}

{{- define "spanstatsd.inject.otlp" -}}
{{- with .Values.otlpIn.forward }}
- {name: SPANSTATSD_OTLP_FORWARD, value: {{ . | quote }}}
{{- end }}
{{- with toString .Values.otlpIn.keep }}
- {name: SPANSTATSD_OTLP_KEEP, value: {{ . | quote }}}
{{- end }}
{{- end -}}

{{- /* Quantities by resource as CEL, where all values of a map have one type: cpu: 1 is "1". */ -}}

{{- define "spanstatsd.inject.quantities" -}}
{{- $all := dict -}}
{{- range $name, $quantity := . }}{{ $_ := set $all $name (toString $quantity) }}{{ end -}}
{{ toJson $all }}
{{- end -}}

{{- /* The resources of a container as CEL: a list of [list, resource, quantity]. */ -}}

{{- define "spanstatsd.inject.resources" -}}
{{- $all := list -}}
{{- range $list, $resources := .resources -}}
{{- range $name, $quantity := $resources }}{{ $all = append $all (list $list $name (toString $quantity)) }}{{ end -}}
{{- end -}}
{{ toJson $all }}
{{- end -}}
