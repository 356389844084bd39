{{/* What the job needs is there for as long. */}}
{{- define "trireme.prepareHook" -}}
helm.sh/hook: {{ join "," . }}
helm.sh/hook-weight: "1"
helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
{{- end }}

{{/* The job of a hook: {root, name, account, events}. It comes after the checks, and is placed as their job is. */}}
{{- define "trireme.prepareJob" -}}
{{- $ := .root -}}
{{- $check := $.Values.upgrade.check | default dict -}}
{{- $full := include "trireme.fullname" $ -}}
apiVersion: batch/v1
kind: Job
metadata:
  name: {{ .name }}
  labels: {{- include "trireme.labels" $ | nindent 4 }}
  annotations:
    helm.sh/hook: {{ join "," .events }}
    helm.sh/hook-weight: "2"
    helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
    helm.sh/hook-output-log-policy: hook-failed
spec:
  backoffLimit: 0
  activeDeadlineSeconds: {{ $check.timeoutSeconds | default 240 }}
  ttlSecondsAfterFinished: 86400
  template:
    metadata:
      labels:
        {{- include "trireme.prepareSelector" $ | nindent 8 }}
        app.kubernetes.io/component: prepare
        {{- with $check.podLabels }}{{ toYaml . | nindent 8 }}{{ end }}
      {{- with $check.podAnnotations }}
      annotations: {{- toYaml . | nindent 8 }}
      {{- end }}
    spec:
      restartPolicy: Never
      serviceAccountName: {{ .account }}
      automountServiceAccountToken: true
      enableServiceLinks: false
      securityContext: {{- toYaml $.Values.podSecurityContext | nindent 8 }}
      {{- with $.Values.imagePullSecrets }}
      imagePullSecrets: {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with $.Values.priorityClassName }}
      priorityClassName: {{ . }}
      {{- end }}
      {{- with ternary $.Values.nodeSelector $check.nodeSelector (kindIs "invalid" $check.nodeSelector) }}
      nodeSelector: {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with ternary $.Values.tolerations $check.tolerations (kindIs "invalid" $check.tolerations) }}
      tolerations: {{- toYaml . | nindent 8 }}
      {{- end }}
      containers:
        - name: prepare
          image: {{ include "trireme.image" $ }}
          imagePullPolicy: {{ $.Values.image.pullPolicy }}
          args:
            - prepare
            - --size={{ $.Values.persistence.size }}
            - --claims={{ include "trireme.claimsMax" $ }}
            {{- if eq (join "," .events) "pre-rollback" }}
            - --rollback
            {{- else if $.Values.upgrade.prepare.smaller }}
            - --smaller
            {{- end }}
            {{- range include "trireme.wanted" $ | fromYamlArray }}
            - {{ .name }}={{ .pods }}
            {{- end }}
          terminationMessagePolicy: FallbackToLogsOnError
          resources: {{- toYaml $check.resources | nindent 12 }}
          securityContext: {{- toYaml $.Values.securityContext | nindent 12 }}
{{- end }}
