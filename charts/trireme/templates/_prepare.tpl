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
{{- $pod := include "trireme.jobValues" (dict "root" $ "of" $check) | fromYaml -}}
apiVersion: batch/v1
kind: Job
metadata:
  name: {{ .name | quote }}
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
        {{- with $pod.podLabels }}{{ toYaml . | nindent 8 }}{{ end }}
      {{- with $pod.podAnnotations }}
      annotations: {{- toYaml . | nindent 8 }}
      {{- end }}
    spec:
      restartPolicy: Never
      serviceAccountName: {{ .account | quote }}
      automountServiceAccountToken: true
      enableServiceLinks: false
      {{- include "trireme.podPlace" (dict "root" $ "pod" $pod) | nindent 6 }}
      containers:
        - name: prepare
          image: {{ include "trireme.image" $ }}
          imagePullPolicy: {{ $.Values.image.pullPolicy }}
          args:
            - prepare
            - --size={{ $.Values.persistence.size }}
            {{- with $.Values.persistence.storageClass }}
            - --storage-class={{ . }}
            {{- end }}
            - --access-modes={{ join "," $.Values.persistence.accessModes }}
            - {{ printf "--claim-annotations=%s" ($.Values.persistence.annotations | default dict | toJson) | quote }}
            - --claims={{ include "trireme.claimsMax" $ }}
            {{- if eq (join "," .events) "pre-rollback" }}
            - --rollback
            {{- else if $.Values.upgrade.prepare.keepClaims }}
            - --keep-claims
            {{- end }}
            {{- /* What is in brackets behind a dollar sign Kubernetes would replace. */}}
            {{- range include "trireme.rendered" $ | fromYamlArray }}
            - {{ printf "--template=%s=%s" .metadata.name (.spec.template | toJson) | replace "$(" "$$(" | toJson }}
            {{- end }}
            {{- range include "trireme.wanted" $ | fromYamlArray }}
            - {{ .name }}={{ .pods }}
            {{- end }}
          {{- with $pod.extraEnv }}
          env: {{- toYaml . | nindent 12 }}
          {{- end }}
          {{- with $pod.extraEnvFrom }}
          envFrom: {{- toYaml . | nindent 12 }}
          {{- end }}
          terminationMessagePolicy: FallbackToLogsOnError
          resources: {{- toYaml $check.resources | nindent 12 }}
          securityContext: {{- toYaml $pod.securityContext | nindent 12 }}
          {{- with $pod.extraVolumeMounts }}
          volumeMounts: {{- toYaml . | nindent 12 }}
          {{- end }}
      {{- with $pod.extraVolumes }}
      volumes: {{- toYaml . | nindent 8 }}
      {{- end }}
{{- end }}
