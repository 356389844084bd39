{{/*
trireme.set is a StatefulSet of members: {root, role, name, replicas, resources}. The role is
member, which votes, or replica.
*/}}
{{- define "trireme.set" -}}
{{- $ := .root -}}
{{- $of := $.Values -}}
{{- if eq .role "replica" }}{{ $of = $.Values.readReplicas }}{{ end -}}
{{- $pod := include "trireme.podValues" (dict "root" $ "of" $of "inherits" (list "all")) | fromYaml -}}
{{- if not $pod.affinity }}{{ $_ := set $pod "affinity" (include "trireme.apart" . | fromYaml) }}{{ end -}}
{{- if not $pod.topologySpreadConstraints }}{{ $_ := set $pod "topologySpreadConstraints" (include "trireme.zones" . | fromYamlArray) }}{{ end -}}
{{- $users := list -}}
{{- if eq .role "member" }}{{ $users = include "trireme.users" $ | fromYamlArray }}{{ end -}}
apiVersion: apps/v1
kind: StatefulSet
metadata:
  name: {{ .name | quote }}
  labels:
    {{- include "trireme.labels" $ | nindent 4 }}
    app.kubernetes.io/component: {{ .role }}
  {{- if eq .role "member" }}
  annotations:
    # All sets of the group that there are to be, also while they have no pods: members of one that is gone and not among them leave.
    trireme.io/sets: {{ include "trireme.wantedNames" $ | quote }}
  {{- end }}
spec:
  serviceName: {{ include "trireme.peers" $ | quote }}
  replicas: {{ .replicas }}
  # All founders have to be there before the group begins.
  podManagementPolicy: Parallel
  updateStrategy: {type: RollingUpdate}
  minReadySeconds: 3
  persistentVolumeClaimRetentionPolicy:
    # Kubernetes does not know who has left the group: its leader deletes claims.
    whenScaled: Retain
    whenDeleted: {{ $.Values.persistence.whenDeleted }}
  selector:
    matchLabels:
      {{- include "trireme.selector" $ | nindent 6 }}
      app.kubernetes.io/component: {{ .role }}
  template:
    metadata:
      labels:
        {{- include "trireme.labels" $ | nindent 8 }}
        app.kubernetes.io/component: {{ .role }}
        {{- with $pod.podLabels }}{{- toYaml . | nindent 8 }}{{- end }}
      annotations:
        kubectl.kubernetes.io/default-container: trireme
        # Mounted as a file. Not the number of members, which running nodes do not look at.
        trireme.io/settings: |
          {{- include "trireme.settings" $ | nindent 10 }}
        {{- with $pod.podAnnotations }}{{- toYaml . | nindent 8 }}{{- end }}
    spec:
      serviceAccountName: {{ include "trireme.serviceAccount" $ | quote }}
      automountServiceAccountToken: true
      enableServiceLinks: false
      terminationGracePeriodSeconds: {{ add $.Values.shutdownSeconds (include "trireme.stopWait" $) 30 }}
      {{- include "trireme.podPlace" (dict "root" $ "pod" $pod) | nindent 6 }}
      containers:
        - name: trireme
          image: {{ include "trireme.image" $ }}
          imagePullPolicy: {{ $.Values.image.pullPolicy }}
          args: [server, --config=/etc/trireme/trireme.cnf]
          env:
            - name: POD_NAME
              valueFrom: {fieldRef: {fieldPath: metadata.name}}
            - name: TRIREME_REPORT_HOST
              value: $(POD_NAME).{{ include "trireme.domain" $ }}
            - name: TRIREME_PEER_ADDRESS
              value: $(POD_NAME).{{ include "trireme.domain" $ }}:17100
            - name: TRIREME_DISCOVERY_EXPECT
              valueFrom: {configMapKeyRef: {name: {{ include "trireme.fullname" $ }}-founders, key: founders}}
            - name: TRIREME_KUBERNETES_RESTORE
              valueFrom: {configMapKeyRef: {name: {{ include "trireme.fullname" $ }}-founders, key: restore, optional: true}}
            # Alone: a pod with an empty volume looks at claims before it founds a group, and nobody leaves.
            - name: TRIREME_KUBERNETES_STATEFULSETS
              value: {{ include "trireme.sets" $ | fromYamlArray | join "," | quote }}
            {{- if $.Values.leaveWhenScaled }}
            - name: TRIREME_KUBERNETES_STATEFULSET
              value: {{ .name | quote }}
            - name: TRIREME_KUBERNETES_DELETE_CLAIMS
              value: {{ ternary "ON" "OFF" (eq $.Values.persistence.whenScaled "Delete") | quote }}
            {{- end }}
            {{- if eq .role "replica" }}
            - name: TRIREME_REPLICA
              value: "ON"
            {{- end }}
            {{- if and (eq $.Values.discovery.type "etcd") $.Values.discovery.etcd.existingSecret }}
            - name: TRIREME_ETCD_USERNAME
              valueFrom: {secretKeyRef: {name: {{ $.Values.discovery.etcd.existingSecret | quote }}, key: username}}
            - name: TRIREME_ETCD_PASSWORD
              valueFrom: {secretKeyRef: {name: {{ $.Values.discovery.etcd.existingSecret | quote }}, key: password}}
            {{- end }}
            {{- if include "trireme.httpToken" $ }}
            # For trireme status in the pod.
            - {name: TRIREME_HTTP_TOKEN_FILE, value: /etc/trireme-http-token/token}
            {{- end }}
            {{- with $.Values.tracing }}
            {{- if .endpoint }}
            - name: POD_NODE_NAME
              valueFrom: {fieldRef: {fieldPath: spec.nodeName}}
            - name: OTEL_RESOURCE_ATTRIBUTES
              value: k8s.namespace.name={{ $.Release.Namespace }},k8s.pod.name=$(POD_NAME),k8s.node.name=$(POD_NODE_NAME)
            {{- with .headers.existingSecret }}
            - name: OTEL_EXPORTER_OTLP_TRACES_HEADERS
              valueFrom: {secretKeyRef: {name: {{ . | quote }}, key: {{ $.Values.tracing.headers.key | quote }}}}
            {{- end }}
            {{- if .ca.existingSecret }}
            - name: OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE
              value: /etc/trireme-trace-ca/ca.crt
            {{- end }}
            {{- end }}
            {{- end }}
            {{- with $pod.extraEnv }}{{ toYaml . | nindent 12 }}{{ end }}
          {{- with $pod.extraEnvFrom }}
          envFrom: {{- toYaml . | nindent 12 }}
          {{- end }}
          ports:
            - {name: mysql, containerPort: 3306}
            - {name: mysql-read, containerPort: 3406}
            - {name: grpc, containerPort: 17000}
            - {name: peers, containerPort: 17100}
            - {name: http, containerPort: 18080}
          # The process answers as soon as its ports are open, also while it recovers or is
          # being given its data: neither start-up nor liveness wait for that, readiness does.
          startupProbe:
            httpGet: {path: /healthz, port: http}
            {{- toYaml $.Values.probes.startup | nindent 12 }}
          livenessProbe:
            httpGet: {path: /healthz, port: http}
            {{- toYaml $.Values.probes.liveness | nindent 12 }}
          readinessProbe:
            httpGet: {path: /readyz, port: http}
            {{- toYaml $.Values.probes.readiness | nindent 12 }}
          lifecycle:
            preStop:
              # Until the Services send nobody here any more; then the node hands leadership over.
              sleep: {seconds: 3}
          # Why it ended, for kubectl describe pod.
          terminationMessagePolicy: FallbackToLogsOnError
          resources: {{- toYaml .resources | nindent 12 }}
          securityContext: {{- toYaml $pod.securityContext | nindent 12 }}
          volumeMounts:
            - {name: data, mountPath: /var/lib/trireme}
            - {name: tmp, mountPath: /tmp}
            - {name: config, mountPath: /etc/trireme, readOnly: true}
            - {name: root, mountPath: /etc/trireme-root, readOnly: true}
            {{- if ne $.Values.peerTLS.source "none" }}
            - {name: peer-tls, mountPath: /etc/trireme-peer-tls, readOnly: true}
            {{- end }}
            {{- if include "trireme.etcdTLS" $ }}
            - {name: etcd-tls, mountPath: /etc/trireme-etcd-tls, readOnly: true}
            {{- end }}
            {{- if include "trireme.httpToken" $ }}
            - {name: http-token, mountPath: /etc/trireme-http-token, readOnly: true}
            {{- end }}
            {{- if ne $.Values.clientTLS.source "self" }}
            - {name: client-tls, mountPath: /etc/trireme-client-tls, readOnly: true}
            {{- end }}
            {{- if include "trireme.clientCA" $ }}
            - {name: client-ca, mountPath: /etc/trireme-client-ca, readOnly: true}
            {{- end }}
            {{- if $users }}
            - {name: users, mountPath: /etc/trireme-users, readOnly: true}
            {{- end }}
            {{- if include "trireme.traceCA" $ }}
            - {name: trace-ca, mountPath: /etc/trireme-trace-ca, readOnly: true}
            {{- end }}
            {{- with $pod.extraVolumeMounts }}{{ toYaml . | nindent 12 }}{{ end }}
        {{- with $pod.sidecars }}
        {{- include "trireme.containers" (dict "list" . "pod" $pod) | nindent 8 }}
        {{- end }}
      volumes:
        - name: tmp
          emptyDir: {}
        - {{ include "trireme.settingsVolume" $ | nindent 10 | trim }}
        - name: root
          secret:
            secretName: {{ include "trireme.rootSecret" $ | quote }}
            items: [{key: {{ $.Values.root.key | quote }}, path: password}]
        {{- if ne $.Values.peerTLS.source "none" }}
        - name: peer-tls
          {{- if eq $.Values.peerTLS.source "certManagerCSI" }}
          csi:
            driver: csi.cert-manager.io
            readOnly: true
            volumeAttributes:
              csi.cert-manager.io/issuer-name: {{ include "trireme.fullname" $ }}-peers
              csi.cert-manager.io/issuer-kind: Issuer
              csi.cert-manager.io/dns-names: ${POD_NAME}.{{ include "trireme.domain" $ }}
              csi.cert-manager.io/key-usages: digital signature,server auth,client auth
              {{- with ($.Values.podSecurityContext).fsGroup }}
              csi.cert-manager.io/fs-group: {{ . | int64 | quote }}
              {{- end }}
          {{- else }}
          secret: {secretName: {{ include "trireme.peerSecret" $ | quote }}, defaultMode: 0440}
          {{- end }}
        {{- end }}
        {{- with include "trireme.etcdTLS" $ }}
        - name: etcd-tls
          secret: {secretName: {{ . | quote }}, defaultMode: 0440}
        {{- end }}
        {{- with include "trireme.httpToken" $ }}
        - name: http-token
          secret: {secretName: {{ . | quote }}, defaultMode: 0440, items: [{key: {{ $.Values.monitoring.token.key | quote }}, path: token}]}
        {{- end }}
        {{- if ne $.Values.clientTLS.source "self" }}
        - name: client-tls
          secret: {secretName: {{ include "trireme.clientSecret" $ | quote }}, defaultMode: 0440}
        {{- end }}
        {{- with $.Values.clientTLS.clientCA }}
        {{- if include "trireme.clientCA" $ }}
        - name: client-ca
          {{- if .existingSecret }}
          secret:
            secretName: {{ .existingSecret | quote }}
          {{- else }}
          configMap:
            name: {{ .existingConfigMap | quote }}
          {{- end }}
            defaultMode: 0440
            items:
              - {key: {{ .key | quote }}, path: ca.crt}
              {{- with .crlKey }}
              - {key: {{ . | quote }}, path: ca.crl}
              {{- end }}
        {{- end }}
        {{- end }}
        {{- if include "trireme.traceCA" $ }}
        - name: trace-ca
          secret:
            secretName: {{ include "trireme.traceCA" $ | quote }}
            defaultMode: 0440
            items: [{key: {{ $.Values.tracing.ca.key | quote }}, path: ca.crt}]
        {{- end }}
        {{- if $users }}
        # All at once: what an account is and its password. A Secret that is missing keeps no node
        # from starting, nor does an account that a later revision has not any more: the ConfigMap is that of the
        # newest, also for pods that are made anew before it is their turn.
        - name: users
          projected:
            defaultMode: 0440
            sources:
              - configMap:
                  name: {{ include "trireme.fullname" $ }}-users
                  optional: true
                  items:
                    {{- range $users }}
                    - {key: {{ .name | quote }}, path: {{ .name }}/account.json}
                    {{- end }}
              {{- range $users }}
              - secret:
                  name: {{ .existingSecret | quote }}
                  optional: true
                  items: [{key: {{ .key | default "password" | quote }}, path: {{ .name }}/password}]
              {{- end }}
        {{- end }}
        {{- with $pod.extraVolumes }}{{ toYaml . | nindent 8 }}{{ end }}
  volumeClaimTemplates:
    - metadata:
        name: data
        labels: {{- include "trireme.selector" $ | nindent 10 }}
        {{- with $.Values.persistence.annotations }}
        annotations: {{- toYaml . | nindent 10 }}
        {{- end }}
      spec:
        accessModes: {{- toYaml $.Values.persistence.accessModes | nindent 10 }}
        {{- with $.Values.persistence.storageClass }}
        storageClassName: {{ . | quote }}
        {{- end }}
        resources: {requests: {storage: {{ $.Values.persistence.size }}}}
{{- end -}}

{{- define "trireme.memberSet" -}}
{{- include "trireme.set" (dict "root" . "role" "member" "name" (include "trireme.fullname" .) "replicas" (include "trireme.wanted" . | fromYamlArray | first).pods "resources" .Values.resources) -}}
{{- end -}}

{{- define "trireme.replicaSet" -}}
{{- include "trireme.set" (dict "root" . "role" "replica" "name" (printf "%s-read" (include "trireme.fullname" .)) "replicas" (include "trireme.wanted" . | fromYamlArray | last).pods "resources" (.Values.readReplicas.resources | default .Values.resources)) -}}
{{- end -}}

{{/* The sets as they are to be, as a list. */}}
{{- define "trireme.rendered" -}}
{{- $all := list (include "trireme.memberSet" . | fromYaml) -}}
{{- if .Values.readReplicas.count }}{{ $all = append $all (include "trireme.replicaSet" . | fromYaml) }}{{ end -}}
{{- toYaml $all -}}
{{- end -}}
