{{/*
What values say of the pods of a workload: {root, of, inherits}. of is the part of values that is the workload's; what it
does not say is as the members' if it is one of inherits, which may be "all".
*/}}
{{- define "trireme.podValues" -}}
{{- $pod := dict -}}
{{- range $key := list "podLabels" "podAnnotations" "extraEnv" "extraEnvFrom" "extraVolumes" "extraVolumeMounts" "initContainers" "sidecars"
  "nodeSelector" "tolerations" "affinity" "topologySpreadConstraints" "priorityClassName" "podSecurityContext" "securityContext" -}}
{{- $value := index $.of $key -}}
{{- if and (kindIs "invalid" $value) (or (has "all" $.inherits) (has $key $.inherits)) -}}{{- $value = index $.root.Values $key -}}{{- end -}}
{{- $_ := set $pod $key $value -}}
{{- end -}}
{{- toYaml $pod -}}
{{- end -}}

{{/* The pods of jobs before upgrades, and those of backups: where members run, unless values say otherwise. */}}
{{- define "trireme.jobValues" -}}
{{- include "trireme.podValues" (dict "root" .root "of" .of "inherits" (list "nodeSelector" "tolerations" "priorityClassName" "podSecurityContext" "securityContext")) -}}
{{- end -}}

{{/* Where pods run, and as whom: {root, pod}, pod being trireme.podValues. */}}
{{- define "trireme.podPlace" -}}
securityContext: {{- toYaml .pod.podSecurityContext | nindent 2 }}
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .pod.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .pod.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- include "trireme.podMore" . }}
{{- end -}}

{{/* What pods of all workloads may have besides: {root, pod}. */}}
{{- define "trireme.podMore" -}}
{{- with .pod.priorityClassName }}
priorityClassName: {{ . | quote }}
{{- end }}
{{- with .pod.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .pod.topologySpreadConstraints }}
topologySpreadConstraints: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .pod.initContainers }}
initContainers: {{- include "trireme.containers" (dict "list" . "pod" $.pod) | nindent 2 }}
{{- end }}
{{- end -}}

{{/* Containers of values' own: what they do not say of their security is as that of the chart's. */}}
{{- define "trireme.containers" -}}
{{- range .list }}
- {{ mergeOverwrite (dict "securityContext" (deepCopy ($.pod.securityContext | default dict))) (ternary (omit . "securityContext") . (kindIs "invalid" .securityContext)) | toYaml | nindent 2 | trim }}
{{- end }}
{{- end -}}

{{/* Members prefer nodes, and zones, where no other is: {root, role}. */}}
{{- define "trireme.apart" -}}
podAntiAffinity:
  preferredDuringSchedulingIgnoredDuringExecution:
    - weight: 100
      podAffinityTerm:
        topologyKey: kubernetes.io/hostname
        labelSelector:
          matchLabels:
            {{- include "trireme.selector" .root | nindent 12 }}
            app.kubernetes.io/component: {{ .role }}
{{- end -}}
{{- define "trireme.zones" -}}
- maxSkew: 1
  topologyKey: topology.kubernetes.io/zone
  whenUnsatisfiable: ScheduleAnyway
  labelSelector:
    matchLabels:
      {{- include "trireme.selector" .root | nindent 6 }}
      app.kubernetes.io/component: {{ .role }}
{{- end -}}
