{{- define "trireme.name" -}}
{{- regexReplaceAll "[-_.]+$" (default .Chart.Name .Values.nameOverride | trunc 40) "" -}}
{{- end -}}

{{/*
At most 40 characters: names of pods and of their hosts are made of it. It has no dot, which names of Services cannot have: objects of hooks,
which Helm deletes by name, have one, so that they are nobody's else.
*/}}
{{- define "trireme.fullname" -}}
{{- $name := include "trireme.plainName" . -}}
{{- if contains "." $name -}}
{{- fail (printf "the name %s has a dot, which names of Services cannot have: give fullnameOverride another one" $name) -}}
{{- else if gt (len $name) 40 -}}
{{- fail (printf "the name %s has %d characters, and names of objects have room for 40. Releases whose names begin alike would have the same one if it were cut: give fullnameOverride a shorter one. A release that was installed when it was cut keeps its objects by fullnameOverride=%s" $name (len $name) ($name | trunc 40 | trimSuffix "-")) -}}
{{- else if not (regexMatch "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$" $name) -}}
{{- fail (printf "the name %s is none that objects of Kubernetes can have, which is of small letters, digits and '-': give nameOverride or fullnameOverride another one" $name) -}}
{{- else if and (regexMatch "^[0-9]" $name) (semverCompare "<1.36.0-0" .Capabilities.KubeVersion.Version) -}}
{{- fail (printf "the name %s begins with a digit, which names of Services cannot before Kubernetes 1.36: give fullnameOverride another one" $name) -}}
{{- end -}}
{{- $name -}}
{{- end -}}

{{- define "trireme.plainName" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride -}}
{{- else if contains (include "trireme.name" .) .Release.Name -}}
{{- .Release.Name -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "trireme.name" .) -}}
{{- end -}}
{{- end -}}

{{/*
Refuses names other than those that the release's sets have: Helm would delete these sets and make empty ones beside their claims, and a set of
another selector it cannot change. Of an umbrella chart's several databases each is found by its chart's name. Without a cluster to look
at nobody knows.
*/}}
{{- define "trireme.sameNames" -}}
{{- if .Release.IsUpgrade -}}
{{- $name := include "trireme.fullname" . -}}
{{- range (lookup "apps/v1" "StatefulSet" .Release.Namespace "").items -}}
{{- $labels := .metadata.labels | default dict -}}
{{- $chart := regexReplaceAll "-v?[0-9]+[.][0-9]+[.][0-9].*$" (get $labels "helm.sh/chart") "" -}}
{{- if and (eq (get (.metadata.annotations | default dict) "meta.helm.sh/release-name") $.Release.Name) (eq (get $labels "app.kubernetes.io/component") "member") (eq $chart $.Chart.Name) -}}
{{- $is := get $labels "app.kubernetes.io/name" -}}
{{- if or (ne .metadata.name $name) (ne $is (include "trireme.name" $)) -}}
{{- fail (printf "the objects of the release %s are called %s (app.kubernetes.io/name: %s), and would be called %s (%s) now, with an empty database in the place of this one: a release keeps its names. Take nameOverride and fullnameOverride back. For another name make a new release from a backup: docs/operations-kubernetes.md, Restoring" $.Release.Name .metadata.name $is $name (include "trireme.name" $)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/*
Refuses names that another release has: with --take-ownership Helm would give this one what is the other's, and take it from there, or delete it when it
goes back. Secrets of one name are refused where they are made.
*/}}
{{- define "trireme.noOthers" -}}
{{- $name := include "trireme.fullname" . -}}
{{- $all := list (list "v1" "Service" $name) (list "v1" "Service" (include "trireme.peers" .)) (list "v1" "ConfigMap" (printf "%s-founders" $name)) -}}
{{- if .Values.readService.enabled }}{{ $all = append $all (list "v1" "Service" (printf "%s-read" $name)) }}{{ end -}}
{{- range include "trireme.wanted" . | fromYamlArray }}{{ $all = prepend $all (list "apps/v1" "StatefulSet" .name) }}{{ end -}}
{{- range $all -}}
{{- $held := lookup (index . 0) (index . 1) $.Release.Namespace (index . 2) -}}
{{- $owner := get (($held.metadata).annotations | default dict) "meta.helm.sh/release-name" -}}
{{- if and $owner (ne $owner $.Release.Name) -}}
{{- fail (printf "the %s %s is of the release %s, whose database would be lost: nothing of it can be taken over, also with --take-ownership. Give the release %s another name, or another fullnameOverride" (index . 1) (index . 2) $owner $.Release.Name) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "trireme.selector" -}}
app.kubernetes.io/name: {{ include "trireme.name" . | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end -}}

{{/* What a text is as the value of a label, which is shorter than a tag may be, and has no digest. */}}
{{- define "trireme.labelValue" -}}
{{- $name := regexReplaceAll "@.*" (toString .) "" -}}
{{- regexReplaceAll "[^A-Za-z0-9._-]" $name "_" | trunc 63 | trimAll "-_." -}}
{{- end -}}

{{- define "trireme.labels" -}}
{{ include "trireme.selector" . }}
app.kubernetes.io/version: {{ include "trireme.labelValue" (.Values.image.tag | default .Chart.AppVersion) | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ include "trireme.labelValue" (printf "%s-%s" .Chart.Name .Chart.Version) }}
{{- end -}}

{{- define "trireme.image" -}}
{{- with .Values.image -}}
{{- if not .digest -}}
{{ printf "%s:%s" .repository (.tag | default $.Chart.AppVersion) }}
{{- else if .tag -}}
{{ printf "%s:%s@%s" .repository .tag .digest }}
{{- else -}}
{{ printf "%s@%s" .repository .digest }}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "trireme.peers" -}}
{{ include "trireme.fullname" . }}-peers
{{- end -}}

{{/* What the hosts' names of all pods end with. */}}
{{- define "trireme.domain" -}}
{{ include "trireme.peers" . }}.{{ .Release.Namespace }}.svc.{{ .Values.clusterDomain }}
{{- end -}}

{{/* The StatefulSets of members. Those for reading may be none yet, or none any more. */}}
{{- define "trireme.sets" -}}
{{- $name := include "trireme.fullname" . -}}
{{ list $name (printf "%s-read" $name) | toYaml }}
{{- end -}}

{{/* Those that are to be, as {name, pods}. */}}
{{- define "trireme.wanted" -}}
{{- $name := include "trireme.fullname" . -}}
{{- $all := list (dict "name" $name "pods" (ternary 0 (int .Values.replicaCount) (.Values.hibernate | default false))) -}}
{{- if .Values.readReplicas.count -}}
{{- $all = append $all (dict "name" (printf "%s-read" $name) "pods" (ternary 0 (int .Values.readReplicas.count) (.Values.hibernate | default false))) -}}
{{- end -}}
{{- toYaml $all -}}
{{- end -}}

{{- define "trireme.wantedNames" -}}
{{- $names := list -}}
{{- range include "trireme.wanted" . | fromYamlArray }}{{ $names = append $names .name }}{{ end -}}
{{- join "," $names -}}
{{- end -}}

{{/*
Refuses to wake a group that sleeps, or whose set is gone, with too few members, {root, running}: it would have no majority, and nobody could take the
others out. How many they are says the ConfigMap with the founders, which is not to say less while it sleeps. running is -1 if there is no set: its pods
may be there or not.
*/}}
{{- define "trireme.wakes" -}}
{{- $wanted := int .root.Values.replicaCount -}}
{{- $are := int (get ((lookup "v1" "ConfigMap" .root.Release.Namespace (printf "%s-founders" (include "trireme.fullname" .root))).data | default dict) "founders" | default "0") -}}
{{- if and .root.Values.hibernate (lt $wanted $are) -}}
{{- fail (printf "a group of %d members that hibernates cannot come to have %d: members leave while a majority of all is there. Change replicaCount before it hibernates, or when it is awake" $are $wanted) -}}
{{- else if and (not .root.Values.hibernate) (le (int .running) 0) (le (mul 2 $wanted) $are) -}}
{{- $why := printf "none of the group's %d members runs" $are -}}
{{- if lt (int .running) 0 }}{{ $why = printf "the StatefulSet of the group's %d members is gone" $are }}{{ end -}}
{{- fail (printf "%s, and %d of them are no majority, without which nothing can be decided, nor members taken out: wake it with replicaCount=%d, and scale it when it is awake. If the volumes of the others are lost: docs/operations-kubernetes.md, When the majority is lost. If they never ran: upgrade.check.group=false" $why $wanted $are) -}}
{{- end -}}
{{- end -}}

{{/*
Refuses an upgrade that ends pods whose claims are being deleted, {root, set}: Kubernetes keeps such a claim as long as its pod runs, and the data go
with it. Where members are started anew one after the other each gets its data from the others; where they all end, or so many others leave that the rest is
no majority of those that stay, nobody gives them any.
*/}}
{{- define "trireme.claimsStay" -}}
{{- if and .root.Release.IsUpgrade .set -}}
{{- $wanted := ternary 0 (int .root.Values.replicaCount) (.root.Values.hibernate | default false) -}}
{{- $are := int .set.spec.replicas -}}
{{- $lost := list -}}
{{- if or (lt $wanted $are) (and (eq $wanted 1) (eq $are 1)) -}}
{{- range $i := until (int (ternary $are $wanted (eq $wanted 0))) -}}
{{- $claim := printf "data-%s-%d" $.set.metadata.name $i -}}
{{- if ((lookup "v1" "PersistentVolumeClaim" $.root.Release.Namespace $claim).metadata).deletionTimestamp }}{{ $lost = append $lost $claim }}{{ end -}}
{{- end -}}
{{- end -}}
{{- if and $wanted (gt (mul 2 (sub $wanted (len $lost))) $wanted) }}{{ $lost = list }}{{ end -}}
{{- with $lost -}}
{{- fail (printf "somebody has deleted %s: Kubernetes keeps the claim as long as its pod runs, and nothing takes that back, so that its data are lost when this upgrade ends the pod, or takes away the members that have them as well. First have each of these members get another volume: kubectl delete pod, one after the other, each when all others are ready (with one member replicaCount=3 before). docs/operations-kubernetes.md, Claims that are being deleted. All the same: upgrade.check.group=false" (join ", " .)) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/*
Refuses an upgrade whose pods would not start for want of a Secret of the user's own, or a key of it, that no file of the check's job shows: {root, set}.
*/}}
{{- define "trireme.givenSecrets" -}}
{{- $ := .root -}}
{{- $all := list -}}
{{- with $.Values.root.existingSecret }}{{ $all = append $all (list "root.existingSecret" . $.Values.root.key) }}{{ end -}}
{{- if eq $.Values.discovery.type "etcd" -}}
{{- with $.Values.discovery.etcd.existingSecret }}{{ $all = concat $all (list (list "discovery.etcd.existingSecret" . "username") (list "discovery.etcd.existingSecret" . "password")) }}{{ end -}}
{{- end -}}
{{- with $.Values.tracing -}}
{{- if and .endpoint .headers.existingSecret }}{{ $all = append $all (list "tracing.headers.existingSecret" .headers.existingSecret .headers.key) }}{{ end -}}
{{- end -}}
{{- if and $.Release.IsUpgrade .set (not $.Values.hibernate) -}}
{{- range $all -}}
{{- $held := lookup "v1" "Secret" $.Release.Namespace (index . 1) -}}
{{- if not $held -}}
{{- fail (printf "%s: there is no Secret %s, without which no pod starts" (index . 0) (index . 1)) -}}
{{- else if not (hasKey ($held.data | default dict) (index . 2)) -}}
{{- fail (printf "%s: the Secret %s has no key %s, without which no pod starts" (index . 0) (index . 1) (index . 2)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* How many claims a set may have, those of members that have left included, and their names: as many as values.schema.json allows read replicas, and as the server looks for. */}}
{{- define "trireme.claimsMax" -}}
99
{{- end -}}
{{- define "trireme.claims" -}}
{{- $claims := list -}}
{{- range $set := include "trireme.sets" . | fromYamlArray -}}
{{- range $i := until (include "trireme.claimsMax" $ | int) -}}
{{- $claims = append $claims (printf "data-%s-%d" $set $i) -}}
{{- end -}}
{{- end -}}
{{- toYaml $claims -}}
{{- end -}}

{{/*
Why Helm may be unable to change a StatefulSet as it is: it makes other claims, or its number of pods is another
one, which kubectl or an autoscaler has set. Also if the members' is gone, or nobody can look; empty: it can.
*/}}
{{- define "trireme.fixed" -}}
{{- if .Release.IsUpgrade -}}
{{- $members := include "trireme.fullname" . -}}
{{- range include "trireme.wanted" . | fromYamlArray -}}
{{- $set := lookup "apps/v1" "StatefulSet" $.Release.Namespace .name -}}
{{- if not $set -}}
{{- if eq .name $members }}gone {{ end -}}
{{- else -}}
{{- range $set.spec.volumeClaimTemplates -}}
{{- if and (eq .metadata.name "data") (ne (toString .spec.resources.requests.storage) (toString $.Values.persistence.size)) }}size {{ end -}}
{{- if and (eq .metadata.name "data") (ne (toJson .spec.accessModes) (toJson $.Values.persistence.accessModes)) }}modes {{ end -}}
{{- if and (eq .metadata.name "data") (ne (.metadata.annotations | default dict | toJson) ($.Values.persistence.annotations | default dict | toJson)) }}annotations {{ end -}}
{{- if and (eq .metadata.name "data") (ne (.spec.storageClassName | default "") ($.Values.persistence.storageClass | default "")) }}class {{ end -}}
{{- end -}}
{{- if ne (int $set.spec.replicas) (int .pods) -}}
{{- range $set.metadata.managedFields -}}
{{- if and (or (eq (.subresource | default "") "scale") (hasPrefix "kubectl" .manager)) (hasKey (get (.fieldsV1 | default dict) "f:spec" | default dict) "f:replicas") }}scaled {{ end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "trireme.serviceAccount" -}}
{{ .Values.serviceAccount.name | default (include "trireme.fullname" .) }}
{{- end -}}

{{- define "trireme.rootSecret" -}}
{{ .Values.root.existingSecret | default (printf "%s-root" (include "trireme.fullname" .)) }}
{{- end -}}

{{- define "trireme.peerSecret" -}}
{{- if eq .Values.peerTLS.source "secret" -}}
{{ required "peerTLS.source is secret: peerTLS.existingSecret has to name the Secret with tls.crt, tls.key and ca.crt" .Values.peerTLS.existingSecret }}
{{- else -}}
{{ include "trireme.fullname" . }}-peer-tls
{{- end -}}
{{- end -}}

{{- define "trireme.clientSecret" -}}
{{- if eq .Values.clientTLS.source "secret" -}}
{{ required "clientTLS.source is secret: clientTLS.existingSecret has to name the Secret with tls.crt and tls.key" .Values.clientTLS.existingSecret }}
{{- else -}}
{{ include "trireme.fullname" . }}-client-tls
{{- end -}}
{{- end -}}

{{/* Where the authorities of clients come from: Secret, ConfigMap or nothing. */}}
{{- define "trireme.clientCA" -}}
{{- with .Values.clientTLS.clientCA -}}
{{- if and .existingSecret .existingConfigMap -}}
{{- fail "clientTLS.clientCA: existingSecret or existingConfigMap has to name the authorities of clients, not both" -}}
{{- else if and .crlKey (not .existingSecret) (not .existingConfigMap) -}}
{{- fail "clientTLS.clientCA: crlKey is of existingSecret or existingConfigMap, which has to be given" -}}
{{- else if .existingSecret -}}
Secret
{{- else if .existingConfigMap -}}
ConfigMap
{{- end -}}
{{- end -}}
{{- end -}}

{{/*
How a Secret is made that is made once, {root, name, key}: "hook": by a hook, since there is none; "manifest": as an object of the
release, as charts before made it, so that it comes to be kept; empty: there is one, which nothing of the release changes any more. What an
upgrade or a rollback applies must not have its data: of a password that was changed since, Helm would refuse to take the old one, or
take it.
*/}}
{{- define "trireme.makes" -}}
{{- $held := lookup "v1" "Secret" .root.Release.Namespace .name -}}
{{- if not $held -}}
hook
{{- else -}}
{{- $notes := $held.metadata.annotations | default dict -}}
{{- $owner := get $notes "meta.helm.sh/release-name" -}}
{{- if and $owner (ne $owner .root.Release.Name) -}}
{{- fail (printf "the Secret %s is of the release %s: take another name for this one, or delete the Secret if nothing needs it" .name $owner) -}}
{{- end -}}
{{- if eq (get $notes "cert-manager.io/certificate-name") (printf "%s-peers" (include "trireme.fullname" .root)) -}}
{{- fail (printf "the Secret %s has a certificate of cert-manager, which nobody would renew any more: keep peerTLS.source=certManager. For a generated one stop all members (hibernate=true), kubectl delete certificate %s-peers, then secret %s, and wake them with hibernate=false and peerTLS.source=generated" .name (include "trireme.fullname" .root) .name) -}}
{{- end -}}
{{- if not (hasKey ($held.data | default dict) .key) -}}
{{- fail (printf "the Secret %s is there and has no key %s: add it, or name the key that it has" .name .key) -}}
{{- end -}}
{{- if and $owner (ne (get $notes "helm.sh/resource-policy") "keep") -}}manifest{{- end -}}
{{- end -}}
{{- end -}}

{{/* The beginning of such a Secret: {root, name, how, type}. A hook's object is of no release's manifest, and stays. */}}
{{- define "trireme.secretHead" -}}
apiVersion: v1
kind: Secret
metadata:
  name: {{ .name | quote }}
  labels: {{- include "trireme.labels" .root | nindent 4 }}
  annotations:
    helm.sh/resource-policy: keep
    {{- if eq .how "hook" }}
    helm.sh/hook: pre-install,pre-upgrade
    # Before the check of an upgrade: a pod that has no such Secret may be why the group is not whole. An installation
    # that is refused leaves none.
    helm.sh/hook-weight: {{ ternary "-2" "5" .root.Release.IsUpgrade | quote }}
    # Never before its creation, which is what none at all would mean.
    helm.sh/hook-delete-policy: hook-failed
    meta.helm.sh/release-name: {{ .root.Release.Name | quote }}
    meta.helm.sh/release-namespace: {{ .root.Release.Namespace | quote }}
    {{- end }}
type: {{ .type }}
{{- end -}}

{{/* What a Secret holds that is there, or what it is to have: {root, name, data}. */}}
{{- define "trireme.secretData" -}}
{{- $held := lookup "v1" "Secret" .root.Release.Namespace .name -}}
data: {{- toYaml ($held.data | default .data) | nindent 2 }}
{{- end -}}

{{/* Charts before had no such value: --reuse-values gives none. */}}
{{- define "trireme.stopWait" -}}
{{ kindIs "invalid" .Values.stopWaitSeconds | ternary 300 .Values.stopWaitSeconds }}
{{- end -}}

{{/*
The file of settings. It stands in an annotation of the pod, so that a pod of an older revision has its own, and a change
starts the pods anew.
*/}}
{{- define "trireme.settings" -}}
cluster_name = {{ .Values.clusterName | default (include "trireme.fullname" .) }}
{{- if eq .Values.discovery.type "etcd" }}
discovery = etcd
etcd_endpoints = {{ required "discovery.type is etcd: discovery.etcd.endpoints has to list its addresses" (join "," .Values.discovery.etcd.endpoints) }}
etcd_prefix = {{ .Values.discovery.etcd.prefix }}
{{- if include "trireme.etcdTLS" . }}
etcd_tls_ca = /etc/trireme-etcd-tls/ca.crt
{{- if .Values.discovery.etcd.tls.clientCertificate }}
etcd_tls_cert = /etc/trireme-etcd-tls/tls.crt
etcd_tls_key = /etc/trireme-etcd-tls/tls.key
{{- end }}
{{- end }}
{{- if not .Values.discovery.etcd.anyDomain }}
etcd_domain = {{ include "trireme.domain" . }}
{{- end }}
{{- else }}
discovery = dns
discovery_dns_pattern = {{ include "trireme.fullname" . }}-{}.{{ include "trireme.domain" . }}:17100
{{- /* By names, for which the certificates are. */}}
discovery_dns_members = _peers._tcp.{{ include "trireme.domain" . }}
{{- end }}
innodb_buffer_pool_size = {{ ternary .Values.bufferPool (int64 .Values.bufferPool | toString) (kindIs "string" .Values.bufferPool) }}
shutdown_timeout = {{ .Values.shutdownSeconds }}s
stop_wait = {{ include "trireme.stopWait" . }}s
initial_root_password_file = /etc/trireme-root/password
root_password_file = /etc/trireme-root/password
{{- if eq .Values.peerTLS.source "none" }}
peer_allow_plaintext = ON
{{- else }}
peer_tls_cert = /etc/trireme-peer-tls/tls.crt
peer_tls_key = /etc/trireme-peer-tls/tls.key
peer_tls_ca = /etc/trireme-peer-tls/ca.crt
{{- if or (eq .Values.peerTLS.source "certManagerCSI") (eq (.Values.peerTLS.identity | default "authority") "host") }}
peer_tls_identity = host
{{- end }}
{{- end }}
{{- if include "trireme.httpToken" . }}
http_token_file = /etc/trireme-http-token/token
{{- end }}
{{- if ne .Values.clientTLS.source "self" }}
ssl_cert = /etc/trireme-client-tls/tls.crt
ssl_key = /etc/trireme-client-tls/tls.key
{{- end }}
{{- if include "trireme.clientCA" . }}
ssl_ca = /etc/trireme-client-ca/ca.crt
{{- if .Values.clientTLS.clientCA.crlKey }}
ssl_crl = /etc/trireme-client-ca/ca.crl
{{- end }}
{{- end }}
{{- if .Values.clientTLS.required }}
require_secure_transport = ON
{{- end }}
{{- if include "trireme.users" . | fromYamlArray }}
users_dir = /etc/trireme-users
{{- end }}
{{- if and .Values.backup.enabled .Values.backup.maxAgeHours }}
backup_max_age = {{ int .Values.backup.maxAgeHours }}h
{{- end }}
{{- with .Values.tracing }}
{{- if .endpoint }}
trace_endpoint = {{ .endpoint }}
trace_sample_ratio = {{ .sampleRatio }}
trace_max_per_second = {{ int64 .maxPerSecond }}
trace_statement_text = {{ .statementText }}
{{- end }}
{{- end }}
{{- range $name, $value := .Values.settings }}
{{ $name }} = {{ if kindIs "float64" $value }}{{ toJson $value }}{{ else }}{{ $value }}{{ end }}
{{- end }}
{{- end -}}

{{/* The volume with that file. */}}
{{- define "trireme.settingsVolume" -}}
name: config
downwardAPI:
  items:
    - {path: trireme.cnf, fieldRef: {fieldPath: "metadata.annotations['trireme.io/settings']"}}
{{- end -}}

{{/* The Secret with the authority of the collector of traces; empty: none. */}}
{{- define "trireme.traceCA" -}}
{{- with .Values.tracing -}}{{- if .endpoint -}}{{ .ca.existingSecret | default "" }}{{- end -}}{{- end -}}
{{- end -}}

{{/* The accounts that the group keeps, that of the backups among them, as a list. */}}
{{- define "trireme.users" -}}
{{- $all := list -}}
{{- range .Values.users -}}
{{- if eq .name "trireme-backup" -}}
{{- fail "users: the name trireme-backup is that of the account of backups (backup.account): take another one" -}}
{{- end -}}
{{- $all = append $all . -}}
{{- end -}}
{{- $backup := and .Values.backup.enabled .Values.backup.account.create | default false -}}
{{- if $backup -}}
{{- $all = append $all (dict "name" "trireme-backup" "user" .Values.backup.account.user "existingSecret" (include "trireme.backupSecret" .)
  "key" .Values.backup.account.key "grants" (list "BACKUP_ADMIN ON *.*")) -}}
{{- end -}}
{{- $names := list -}}
{{- $accounts := list -}}
{{- range $all -}}
{{- $account := printf "%s@%s" (.user | default .name) (.host | default "%" | lower) -}}
{{- include "trireme.accountFits" (dict "entry" . "own" (and $backup (eq .name "trireme-backup"))) -}}
{{- if or (has .name $names) (has $account $accounts) -}}
{{- fail (printf "users: %s, the account %s, comes twice" .name $account) -}}
{{- end -}}
{{- $names = append $names .name -}}
{{- $accounts = append $accounts $account -}}
{{- end -}}
{{- toYaml $all -}}
{{- end -}}

{{/* Refuses an account that the server has itself, or cannot have: {entry, own}, own being that of backups. */}}
{{- define "trireme.accountFits" -}}
{{- $value := ternary "backup.account.user" (printf "users: %s" .entry.name) .own -}}
{{- $user := .entry.user | default .entry.name -}}
{{- if and (eq $user "root") (eq (.entry.host | default "%") "%") -}}
{{- fail (printf "%s: root@%% is the group's own account, whose password is that of root.existingSecret: take another user" $value) -}}
{{- end -}}
{{- if gt (len (splitList "" $user)) 32 -}}
{{- fail (printf "%s: the user's name %s is longer than 32 characters: give user a shorter one" $value $user) -}}
{{- end -}}
{{- range .entry.grants -}}
{{- range splitList "." (regexReplaceAll ".* [Oo][Nn] +((TABLE|FUNCTION|PROCEDURE) +)?" . "" | trim) -}}
{{- if gt (len (splitList "" (trimAll "`" .))) 64 -}}
{{- fail (printf "%s: grants: the name %s is longer than the 64 characters that names of databases and tables have room for" $value .) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "trireme.backupSecret" -}}
{{ .Values.backup.account.existingSecret | default (printf "%s-backup" (include "trireme.fullname" .)) }}
{{- end -}}

{{/* Not the members' labels: a job is no peer. */}}
{{- define "trireme.backupSelector" -}}
app.kubernetes.io/name: {{ include "trireme.name" . }}-backup
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end -}}

{{/* Not the members' labels either. */}}
{{- define "trireme.checkSelector" -}}
app.kubernetes.io/name: {{ include "trireme.name" . }}-check
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end -}}

{{/* The pod of helm test: by the members' labels Services would lead to it. */}}
{{- define "trireme.testSelector" -}}
app.kubernetes.io/name: {{ include "trireme.name" . }}-test
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end -}}

{{- define "trireme.prepareSelector" -}}
app.kubernetes.io/name: {{ include "trireme.name" . }}-prepare
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end -}}

{{/* The Secret by which etcd is spoken with over TLS, if there is one. */}}
{{- define "trireme.etcdTLS" -}}
{{- if eq .Values.discovery.type "etcd" -}}
{{- with .Values.discovery.etcd.tls -}}{{ .existingSecret }}{{- end -}}
{{- end -}}
{{- end -}}

{{/* The Secret with the token of /metrics and /status, if there is one. */}}
{{- define "trireme.httpToken" -}}
{{- with .Values.monitoring.token -}}{{ .existingSecret }}{{- end -}}
{{- end -}}

{{/*
The Secrets and ConfigMaps with certificates that can be looked at before an upgrade, as {name, path, volume}: those of the
user's own, of which one that is missing is an empty directory, and those that the release has made already, or makes by a hook before.
*/}}
{{- define "trireme.checkFiles" -}}
{{- $all := list -}}
{{- if .Release.IsUpgrade -}}
{{- $secrets := list -}}
{{- if not (has .Values.peerTLS.source (list "none" "certManagerCSI")) -}}
{{- $secrets = append $secrets (dict "name" "peer-tls" "of" (include "trireme.peerSecret" .) "given" (has .Values.peerTLS.source (list "secret" "generated"))) -}}
{{- end -}}
{{- if ne .Values.clientTLS.source "self" -}}
{{- $secrets = append $secrets (dict "name" "client-tls" "of" (include "trireme.clientSecret" .) "given" (eq .Values.clientTLS.source "secret")) -}}
{{- end -}}
{{- if include "trireme.etcdTLS" . -}}
{{- $secrets = append $secrets (dict "name" "etcd-tls" "of" (include "trireme.etcdTLS" .) "given" true) -}}
{{- end -}}
{{- with include "trireme.httpToken" . -}}
{{- $all = append $all (dict "name" "http-token" "secret" (dict "secretName" . "defaultMode" 0440 "optional" true "items" (list (dict "key" $.Values.monitoring.token.key "path" "token")))) -}}
{{- end -}}
{{- range $secrets -}}
{{- if or .given (lookup "v1" "Secret" $.Release.Namespace .of) -}}
{{- $all = append $all (dict "name" .name "secret" (dict "secretName" .of "defaultMode" 0440 "optional" true)) -}}
{{- end -}}
{{- end -}}
{{- if include "trireme.clientCA" . -}}
{{- with .Values.clientTLS.clientCA -}}
{{- $items := list (dict "key" .key "path" "ca.crt") -}}
{{- if .crlKey -}}{{- $items = append $items (dict "key" .crlKey "path" "ca.crl") -}}{{- end -}}
{{- if .existingSecret -}}
{{- $all = append $all (dict "name" "client-ca" "secret" (dict "secretName" .existingSecret "defaultMode" 0440 "optional" true "items" $items)) -}}
{{- else -}}
{{- $all = append $all (dict "name" "client-ca" "configMap" (dict "name" .existingConfigMap "defaultMode" 0440 "optional" true "items" $items)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- toYaml $all -}}
{{- end -}}

{{/*
The volume with the token of /status that members demand which run now, {root, set}, as a list: by the values that is another one if they change it.
Without a set to look at it is that of the values. It is not where the settings say: the nodes that are to be started have their own.
*/}}
{{- define "trireme.tokenNow" -}}
{{- $all := list -}}
{{- $name := include "trireme.httpToken" .root -}}
{{- $key := "" -}}
{{- if $name }}{{ $key = .root.Values.monitoring.token.key }}{{ end -}}
{{- if .set -}}
{{- $name = "" -}}
{{- range ((.set.spec.template).spec).volumes -}}
{{- if and (eq .name "http-token") .secret -}}
{{- $name = .secret.secretName -}}
{{- range .secret.items }}{{ $key = .key }}{{ end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if $name -}}
{{- $all = append $all (dict "name" "http-token-now" "secret" (dict "secretName" $name "defaultMode" 0440 "optional" true "items" (list (dict "key" $key "path" "token")))) -}}
{{- end -}}
{{- toYaml $all -}}
{{- end -}}

{{/* Whether the Service for clients has a port besides that of MySQL; empty: it has not. Values of a release from before say nothing of it. */}}
{{- define "trireme.hasGRPC" -}}
{{- if ternary .Values.service.grpc true (kindIs "bool" .Values.service.grpc) }}true{{ end -}}
{{- end -}}
{{- define "trireme.hasHTTP" -}}
{{- if ternary .Values.service.http (eq .Values.service.type "ClusterIP") (kindIs "bool" .Values.service.http) }}true{{ end -}}
{{- end -}}

{{/* Whom a backup is asked of, in turn: read replicas, the newest members first, and whoever answers. */}}
{{- define "trireme.backupNodes" -}}
{{- $domain := include "trireme.domain" . -}}
{{- $name := include "trireme.fullname" . -}}
{{- $all := list -}}
{{- range $i := until (min 3 (int .Values.readReplicas.count) | int) -}}
{{- $all = append $all (printf "%s-read-%d.%s:17000" $name $i $domain) -}}
{{- end -}}
{{- range $i := until (int .Values.replicaCount) | reverse -}}
{{- $all = append $all (printf "%s-%d.%s:17000" $name $i $domain) -}}
{{- end -}}
{{- if include "trireme.hasGRPC" . -}}
{{- $all = append $all (printf "%s.%s.svc.%s:17000" $name .Release.Namespace .Values.clusterDomain) -}}
{{- end -}}
{{- join "," $all -}}
{{- end -}}

{{/* The beginning of a Service for clients; what has to be selected besides follows. */}}
{{- define "trireme.clientPort" -}}
type: {{ .service.type }}
{{- with .service.loadBalancerClass }}
loadBalancerClass: {{ . | quote }}
{{- end }}
{{- with .service.loadBalancerSourceRanges }}
loadBalancerSourceRanges: {{- toYaml . | nindent 2 }}
{{- end }}
selector: {{- include "trireme.selector" .root | nindent 2 }}
{{- end -}}

{{/* A container that runs the shell for SQL. Under a ResourceQuota a pod has to say what it needs. */}}
{{- define "trireme.testShell" -}}
image: {{ include "trireme.image" . }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
resources: {requests: {cpu: 50m, memory: 64Mi}, limits: {memory: 128Mi}}
securityContext: {{- toYaml .Values.securityContext | nindent 2 }}
volumeMounts:
  - {name: root, mountPath: /etc/trireme-root, readOnly: true}
{{- end -}}

{{/* Rules of a NetworkPolicy by networkPolicy.egress: to DNS, and to the API of Kubernetes. */}}
{{- define "trireme.egressDNS" -}}
- ports:
    {{- range .dnsPorts | default (list 53) }}
    - {port: {{ . }}, protocol: UDP}
    - {port: {{ . }}, protocol: TCP}
    {{- end }}
  {{- with .dns }}
  to: {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end -}}
{{- define "trireme.egressAPI" -}}
- ports:
    {{- range .apiServerPorts }}
    - {port: {{ . }}}
    {{- end }}
  {{- with .apiServer }}
  to: {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end -}}

{{/* The ports of addresses, each once. */}}
{{- define "trireme.ports" -}}
{{- $ports := list -}}
{{- range . -}}
{{- $port := regexFind ":[0-9]+/?$" . | trimPrefix ":" | trimSuffix "/" -}}
{{- $ports = append $ports (int ($port | default (ternary "443" "80" (hasPrefix "https://" .)))) -}}
{{- end -}}
{{- toYaml (uniq $ports) -}}
{{- end -}}
