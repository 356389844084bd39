{{/*
What values.schema.json cannot say of values, or says without telling why: each refusal names the value, what is wrong, and what to do. Nothing has been made
or changed by then. What is of a pod's parts together is in _fits.tpl.
*/}}
{{- define "trireme.refuse" -}}
{{- include "trireme.refuseSettings" . -}}
{{- include "trireme.refuseServices" . -}}
{{- include "trireme.refusePolicies" . -}}
{{- include "trireme.refuseSizes" . -}}
{{- include "trireme.refuseTimes" . -}}
{{- include "trireme.refusePods" . -}}
{{- include "trireme.refuseOthers" . -}}
{{- end -}}

{{/* The settings that the chart makes itself, and by what. */}}
{{- define "trireme.ownSettings" -}}
datadir: its volume is there
port: clients come by service.port
read_only_port: clients come by readService.port
http_port: Services and probes count on it
peer_port: Services count on it
grpc_port: Services count on it
bind_address: Services lead to all addresses of a pod
peer_bind: the other members reach all addresses of a pod
report_host: it is the pod's name
peer_address: it is the pod's name
cluster_name: use clusterName
discovery: use discovery.type
discovery_dns_members: it is by the names of pods
discovery_dns_pattern: it is by the names of pods
discovery_dns_service: it is by the names of pods
discovery_dns_srv: it is by the names of pods
discovery_expect: use replicaCount
founders: use replicaCount
etcd_endpoints: use discovery.etcd.endpoints
etcd_prefix: use discovery.etcd.prefix
etcd_domain: use discovery.etcd.anyDomain
etcd_username: use discovery.etcd.existingSecret
etcd_password: use discovery.etcd.existingSecret
etcd_tls_ca: use discovery.etcd.tls
etcd_tls_cert: use discovery.etcd.tls
etcd_tls_key: use discovery.etcd.tls
replica: use readReplicas.count
peer_tls_cert: use peerTLS
peer_tls_key: use peerTLS
peer_tls_ca: use peerTLS
peer_tls_identity: use peerTLS.identity
peer_allow_plaintext: use peerTLS.source
http_token_file: use monitoring.token
ssl_cert: use clientTLS
ssl_key: use clientTLS
ssl_ca: use clientTLS.clientCA
ssl_crl: use clientTLS.clientCA
require_secure_transport: use clientTLS.required
innodb_buffer_pool_size: use bufferPool
shutdown_timeout: use shutdownSeconds
stop_wait: use stopWaitSeconds
initial_root_password: use root.existingSecret
initial_root_password_file: use root.existingSecret
root_password_file: use root.existingSecret
users_dir: use users
backup_max_age: use backup.maxAgeHours
trace_endpoint: use tracing.endpoint
trace_sample_ratio: use tracing.sampleRatio
trace_max_per_second: use tracing.maxPerSecond
trace_statement_text: use tracing.statementText
{{- end -}}

{{- define "trireme.refuseSettings" -}}
{{- $own := include "trireme.ownSettings" . | fromYaml -}}
{{- range $name, $value := .Values.settings -}}
{{- with get $own $name }}{{ fail (printf "settings.%s: the chart sets it itself, so that it would be there twice: %s" $name .) }}{{ end -}}
{{- if and (kindIs "string" $value) (contains " #" $value) (not (regexMatch `^(".*"|'.*')$` $value)) -}}
{{- fail (printf "settings.%s: what follows ' #' would be taken for a comment: write the value in quotes of its own, as '\"a #b\"'" $name) -}}
{{- end -}}
{{- end -}}
{{- if gt (len (include "trireme.settings" .)) 200000 -}}
{{- fail "settings: they are longer than the 200000 bytes that an annotation of a pod has room for" -}}
{{- end -}}
{{- end -}}

{{- define "trireme.refuseServices" -}}
{{- $range := splitList "-" (.Values.nodePortRange | default "30000-32767") -}}
{{- $first := index $range 0 | int -}}
{{- $last := index $range 1 | int -}}
{{- if or (lt $first 1) (gt $last 65535) (gt $first $last) -}}
{{- fail (printf "nodePortRange: %s is no range of ports: it begins with the smaller one, as 30000-32767" .Values.nodePortRange) -}}
{{- end -}}
{{- $all := list (list "service" .Values.service) -}}
{{- if .Values.readService.enabled }}{{ $all = append $all (list "readService" .Values.readService) }}{{ end -}}
{{- range $all -}}
{{- $name := index . 0 -}}
{{- with index . 1 -}}
{{- with .nodePort -}}
{{- if or (lt (int .) $first) (gt (int .) $last) -}}
{{- fail (printf "%s.nodePort: %d is not one of %d-%d, the ports that Kubernetes gives to nodes: take one of these, or null for any; or say in nodePortRange which your cluster has (--service-node-port-range of kube-apiserver)" $name (int .) $first $last) -}}
{{- end -}}
{{- end -}}
{{- if and .nodePort (eq .type "ClusterIP") -}}
{{- fail (printf "%s.nodePort: a Service of type ClusterIP has no port on nodes: take %s.type NodePort or LoadBalancer, or nodePort: null" $name $name) -}}
{{- end -}}
{{- if and .loadBalancerClass (ne .type "LoadBalancer") -}}
{{- fail (printf "%s.loadBalancerClass: it is of a Service of type LoadBalancer, and this one is %s: set %s.type, or leave it empty" $name .type $name) -}}
{{- end -}}
{{- if and .loadBalancerSourceRanges (ne .type "LoadBalancer") -}}
{{- fail (printf "%s.loadBalancerSourceRanges: they are of a Service of type LoadBalancer, and this one is %s: it would be open to all. networkPolicy.clients says who may connect" $name .type) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if and .Values.readService.enabled .Values.service.nodePort (eq (toString .Values.service.nodePort) (toString .Values.readService.nodePort)) -}}
{{- fail (printf "service.nodePort and readService.nodePort: both are %d, which one Service alone can have" (int .Values.service.nodePort)) -}}
{{- end -}}
{{- if or (and (include "trireme.hasGRPC" .) (eq (int .Values.service.port) 17000)) (and (include "trireme.hasHTTP" .) (eq (int .Values.service.port) 18080)) -}}
{{- fail (printf "service.port: %d is the port of gRPC (service.grpc) or HTTP (service.http) of the same Service: take another one, as 3306" (int .Values.service.port)) -}}
{{- end -}}
{{- $ports := list -}}
{{- if eq .Values.discovery.type "etcd" -}}
{{- range .Values.discovery.etcd.endpoints }}{{ $ports = append $ports (list "discovery.etcd.endpoints" .) }}{{ end -}}
{{- end -}}
{{- with (.Values.tracing).endpoint }}{{ $ports = append $ports (list "tracing.endpoint" .) }}{{ end -}}
{{- range $ports -}}
{{- range include "trireme.ports" (list (index . 1)) | fromYamlArray -}}
{{- if or (lt (int .) 1) (gt (int .) 65535) }}{{ fail (printf "%s: %d is no port: ports are 1 to 65535" (index (first $ports) 0) (int .)) }}{{ end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The bits of an address, as 0 and 1; empty: it is none. */}}
{{- define "trireme.bits" -}}
{{- if regexMatch `^[0-9]{1,3}([.][0-9]{1,3}){3}$` . -}}
{{- $bits := "" -}}
{{- $wrong := false -}}
{{- range splitList "." . -}}
{{- if or (gt (atoi .) 255) (and (hasPrefix "0" .) (ne . "0")) }}{{ $wrong = true }}{{ end -}}
{{- $bits = printf "%s%08b" $bits (atoi .) -}}
{{- end -}}
{{- if not $wrong }}{{ $bits }}{{ end -}}
{{- else if regexMatch `^([0-9a-fA-F]{1,4}(:[0-9a-fA-F]{1,4})*)?(::)?([0-9a-fA-F]{1,4}(:[0-9a-fA-F]{1,4})*)?$` . -}}
{{- $of := dict "0" "0000" "1" "0001" "2" "0010" "3" "0011" "4" "0100" "5" "0101" "6" "0110" "7" "0111" "8" "1000" "9" "1001" "a" "1010" "b" "1011" "c" "1100" "d" "1101" "e" "1110" "f" "1111" -}}
{{- $halves := splitList "::" . -}}
{{- $parts := list -}}
{{- range $halves }}{{ $parts = append $parts (without (splitList ":" .) "") }}{{ end -}}
{{- $left := index $parts 0 -}}
{{- $right := list -}}
{{- if gt (len $halves) 1 }}{{ $right = index $parts 1 }}{{ end -}}
{{- $missing := sub 8 (add (len $left) (len $right)) | int -}}
{{- if ternary (ge $missing 1) (eq $missing 0) (gt (len $halves) 1) -}}
{{- $zeros := list }}{{ range until $missing }}{{ $zeros = append $zeros "0" }}{{ end -}}
{{- range concat $left $zeros $right }}{{ range regexFindAll "." (printf "000%s" (lower .) | trunc -4) -1 }}{{ get $of . }}{{ end }}{{ end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The bits that addresses of a range begin with; fails if it is none: {of, range}. */}}
{{- define "trireme.rangeBits" -}}
{{- $parts := splitList "/" .range -}}
{{- $bits := include "trireme.bits" (first $parts) -}}
{{- if or (ne (len $parts) 2) (not $bits) (not (regexMatch "^(0|[1-9][0-9]{0,2})$" (last $parts))) -}}
{{- fail (printf "%s: %s is no range of addresses, which is as 10.0.0.0/8 or fd00::/8" .of .range) -}}
{{- end -}}
{{- $length := last $parts | atoi -}}
{{- if gt $length (len $bits) }}{{ fail (printf "%s: %s: addresses have no more than %d bits" .of .range (len $bits)) }}{{ end -}}
{{- if contains "1" (substr $length (len $bits) $bits) -}}
{{- fail (printf "%s: %s is an address in a range: a range has nothing behind its first %d bits, as 10.0.0.0/8, and a single address is a range by /%d" .of .range $length (len $bits)) -}}
{{- end -}}
{{- ternary "4" "6" (eq (len $bits) 32) }}{{ substr 0 $length $bits -}}
{{- end -}}

{{/* Who is named by networkPolicy: {of, peers}. */}}
{{- define "trireme.refusePeers" -}}
{{- $of := .of -}}
{{- range .peers -}}
{{- with .ipBlock -}}
{{- $cidr := .cidr -}}
{{- $all := include "trireme.rangeBits" (dict "of" $of "range" $cidr) -}}
{{- range .except -}}
{{- $part := include "trireme.rangeBits" (dict "of" $of "range" .) -}}
{{- if or (not (hasPrefix $all $part)) (eq $all $part) }}{{ fail (printf "%s: except: %s is no part of %s, of which it is to be taken" $of . $cidr) }}{{ end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* What the API would not take of NetworkPolicies, which Helm applies when it has changed pods already. */}}
{{- define "trireme.refusePolicies" -}}
{{- with .Values.networkPolicy -}}
{{- include "trireme.refusePeers" (dict "of" "networkPolicy.clients" "peers" .clients) -}}
{{- include "trireme.refusePeers" (dict "of" "networkPolicy.monitoring" "peers" .monitoring) -}}
{{- with .egress -}}
{{- range $key := list "dns" "apiServer" "etcd" "tracing" -}}
{{- include "trireme.refusePeers" (dict "of" (printf "networkPolicy.egress.%s" $key) "peers" (index $.Values.networkPolicy.egress $key)) -}}
{{- end -}}
{{- range .extra -}}
{{- include "trireme.refusePeers" (dict "of" "networkPolicy.egress.extra" "peers" .to) -}}
{{- range .ports -}}
{{- if not (kindIs "invalid" .endPort) -}}
{{- if or (kindIs "invalid" .port) (kindIs "string" .port) -}}
{{- fail (printf "networkPolicy.egress.extra: endPort %d goes with a port that is a number, from which it is counted" (int .endPort)) -}}
{{- else if lt (int .endPort) (int .port) -}}
{{- fail (printf "networkPolicy.egress.extra: endPort %d is before port %d" (int .endPort) (int .port)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- range list (list "service.loadBalancerSourceRanges" .Values.service.loadBalancerSourceRanges) (list "readService.loadBalancerSourceRanges" .Values.readService.loadBalancerSourceRanges) -}}
{{- $of := index . 0 -}}
{{- range index . 1 }}{{ $_ := include "trireme.rangeBits" (dict "of" $of "range" .) }}{{ end -}}
{{- end -}}
{{- end -}}

{{/* A quantity of Kubernetes as a number. */}}
{{- define "trireme.amount" -}}
{{- $text := toString . -}}
{{- if kindIs "float64" . }}{{ $text = printf "%.3f" . }}{{ end -}}
{{- $suffix := regexFind "([EPTGMk]i?|Ki|[mun])$" $text -}}
{{- $times := get (dict "" 1.0 "n" 1e-9 "u" 1e-6 "m" 1e-3 "k" 1e3 "M" 1e6 "G" 1e9 "T" 1e12 "P" 1e15 "E" 1e18
  "Ki" 1024.0 "Mi" 1048576.0 "Gi" 1073741824.0 "Ti" 1099511627776.0 "Pi" 1125899906842624.0 "Ei" 1152921504606846976.0) $suffix -}}
{{- printf "%.9f" (mulf (trimSuffix $suffix $text | float64) $times) -}}
{{- end -}}

{{/* A size of the server's own settings in bytes, as 100M. */}}
{{- define "trireme.bytes" -}}
{{- $text := toString . -}}
{{- if kindIs "float64" . }}{{ $text = printf "%.0f" . }}{{ end -}}
{{- $suffix := regexFind "[KMGTkmgt]i?$" $text -}}
{{- $times := get (dict "" 1.0 "k" 1024.0 "m" 1048576.0 "g" 1073741824.0 "t" 1099511627776.0) ($suffix | lower | trimSuffix "i") -}}
{{- printf "%.0f" (mulf (trimSuffix $suffix $text | float64) $times) -}}
{{- end -}}

{{/*
A member writes its redo log in full, a first file of the log of transactions, system tables and what they need to be changed before its first row; below
that it does not start.
*/}}
{{- define "trireme.refuseSizes" -}}
{{- $redo := get (.Values.settings | default dict) "innodb_redo_log_capacity" | default "100M" -}}
{{- $least := add (include "trireme.bytes" $redo | float64) 134217728 -}}
{{- if lt (include "trireme.amount" .Values.persistence.size | float64) (float64 $least) -}}
{{- fail (printf "persistence.size: %v is too small for a member to start: its redo log takes %v (settings.innodb_redo_log_capacity), and what it writes before the first row about 128Mi. Take at least %dMi, and room for the data" .Values.persistence.size $redo (div (add $least 1048575) 1048576)) -}}
{{- end -}}
{{- if gt (include "trireme.amount" .Values.persistence.size | float64) 9.2e18 -}}
{{- fail (printf "persistence.size: %v is more than Kubernetes can count" .Values.persistence.size) -}}
{{- end -}}
{{- with .Values.backup -}}
{{- if and .enabled (not .persistence.existingClaim) -}}
{{- if or (lt (include "trireme.amount" .persistence.size | float64) 16777216.0) (gt (include "trireme.amount" .persistence.size | float64) 9.2e18) -}}
{{- fail (printf "backup.persistence.size: %v has no room for a backup, or is more than Kubernetes can count: it has to be as large as the database some times over, as 50Gi" .persistence.size) -}}
{{- end -}}
{{- if and (gt (len .persistence.accessModes) 1) (has "ReadWriteOncePod" .persistence.accessModes) -}}
{{- fail "backup.persistence.accessModes: ReadWriteOncePod goes with no other mode: name it alone" -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* A length of time of Prometheus in seconds. */}}
{{- define "trireme.seconds" -}}
{{- $sum := 0.0 -}}
{{- $times := dict "y" 31536000.0 "w" 604800.0 "d" 86400.0 "h" 3600.0 "m" 60.0 "s" 1.0 "ms" 0.001 -}}
{{- range regexFindAll "[0-9]+[a-z]+" . -1 -}}
{{- $unit := regexFind "[a-z]+$" . -}}
{{- $sum = addf $sum (mulf (trimSuffix $unit . | float64) (get $times $unit)) -}}
{{- end -}}
{{- printf "%.3f" $sum -}}
{{- end -}}

{{/* backup.schedule, whose parts are to be parted by one blank each. */}}
{{- define "trireme.schedule" -}}
{{- regexReplaceAll `\s+` (trim .schedule) " " -}}
{{- end -}}

{{- define "trireme.refuseSchedule" -}}
{{- $how := "it is minute, hour, day of the month, month and day of the week, as '0 2 * * *', or @hourly, @daily, @weekly, @monthly, @yearly or @every 6h" -}}
{{- if regexMatch "^(CRON_)?TZ=" . -}}
{{- fail (printf "backup.schedule: %s: Kubernetes takes no time zone there: write it as backup.timeZone" .) -}}
{{- else if hasPrefix "@every " . -}}
{{- $every := trimPrefix "@every " . -}}
{{- if not (regexMatch "^([0-9]{1,6}h)?([0-9]{1,6}m)?([0-9]{1,6}s)?$" $every) -}}
{{- fail (printf "backup.schedule: %s: @every is followed by a length of time, as 6h or 1h30m" .) -}}
{{- else if lt (include "trireme.seconds" $every | float64) 60.0 -}}
{{- fail (printf "backup.schedule: %s is less than a minute" .) -}}
{{- end -}}
{{- else if hasPrefix "@" . -}}
{{- if not (has . (list "@yearly" "@annually" "@monthly" "@weekly" "@daily" "@midnight" "@hourly")) }}{{ fail (printf "backup.schedule: there is no %s: %s" . $how) }}{{ end -}}
{{- else -}}
{{- $fields := splitList " " . -}}
{{- if ne (len $fields) 5 }}{{ fail (printf "backup.schedule: %q has %d parts, and 5 are needed: %s" . (len (without $fields "")) $how) }}{{ end -}}
{{- $parts := list "minute" "hour" "day of the month" "month" "day of the week" -}}
{{- $least := list 0 0 1 1 0 -}}
{{- $most := list 59 23 31 12 6 -}}
{{- $months := dict "jan" 1 "feb" 2 "mar" 3 "apr" 4 "may" 5 "jun" 6 "jul" 7 "aug" 8 "sep" 9 "oct" 10 "nov" 11 "dec" 12 -}}
{{- $days := dict "sun" 0 "mon" 1 "tue" 2 "wed" 3 "thu" 4 "fri" 5 "sat" 6 -}}
{{- $names := list dict dict dict $months $days -}}
{{- range $i, $field := $fields -}}
{{- $part := index $parts $i -}}
{{- range $item := splitList "," $field -}}
{{- $ends := splitList "-" (regexReplaceAll "/[1-9][0-9]{0,3}$" $item "" | lower) -}}
{{- if not (has (join "-" $ends) (list "*" "?")) -}}
{{- $values := list -}}
{{- range $ends -}}
{{- if hasKey (index $names $i) . -}}
{{- $values = append $values (get (index $names $i) .) -}}
{{- else if not (regexMatch "^[0-9]{1,2}$" .) -}}
{{- fail (printf "backup.schedule: %q is no %s: %s" $item $part $how) -}}
{{- else if and (eq $i 4) (eq (atoi .) 7) -}}
{{- fail "backup.schedule: there is no day 7 of the week here: Sunday is 0" -}}
{{- else if or (lt (atoi .) (index $least $i)) (gt (atoi .) (index $most $i)) -}}
{{- fail (printf "backup.schedule: %s is no %s, which is %d to %d" . $part (index $least $i) (index $most $i)) -}}
{{- else -}}
{{- $values = append $values (atoi .) -}}
{{- end -}}
{{- end -}}
{{- if gt (len $values) 2 }}{{ fail (printf "backup.schedule: %q is no %s: %s" $item $part $how) }}{{ end -}}
{{- if gt (int (first $values)) (int (last $values)) -}}
{{- fail (printf "backup.schedule: %s of the %s ends before it begins: write two of them, parted by a comma" $item $part) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "trireme.refuseTimes" -}}
{{- with .Values.backup -}}
{{- if .enabled -}}
{{- with .timeZone -}}
{{- if not (has . ($.Files.Lines "files/zones.txt")) -}}
{{- fail (printf "backup.timeZone: there is no time zone %q: names are those of the IANA database, as Europe/Berlin or UTC, in this spelling; empty is that of the cluster's control plane" .) -}}
{{- end -}}
{{- end -}}
{{- include "trireme.refuseSchedule" (include "trireme.schedule" .) -}}
{{- end -}}
{{- end -}}
{{- with (.Values.upgrade).check -}}
{{- if and .enabled .group (le (int .timeoutSeconds) (int .waitSeconds)) -}}
{{- fail (printf "upgrade.check.timeoutSeconds: the job would be ended after %d s, while it still waits for the group (upgrade.check.waitSeconds: %d), and could not say for what: give it more" (int .timeoutSeconds) (int .waitSeconds)) -}}
{{- end -}}
{{- end -}}
{{- with .Values.monitoring.serviceMonitor -}}
{{- if and .enabled .interval .scrapeTimeout -}}
{{- if eq (include "trireme.seconds" .interval | float64) 0.0 }}{{ fail (printf "monitoring.serviceMonitor.interval: %s is no time" .interval) }}{{ end -}}
{{- if gt (include "trireme.seconds" .scrapeTimeout | float64) (include "trireme.seconds" .interval | float64) -}}
{{- fail (printf "monitoring.serviceMonitor.scrapeTimeout: %s is longer than monitoring.serviceMonitor.interval, %s, which Prometheus does not take" .scrapeTimeout .interval) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "trireme.refuseOthers" -}}
{{- $seen := list -}}
{{- range .Values.imagePullSecrets -}}
{{- if has .name $seen }}{{ fail (printf "imagePullSecrets: %s comes twice" .name) }}{{ end -}}
{{- $seen = append $seen .name -}}
{{- end -}}
{{- $least := include "trireme.domain" . | len | add 9 (include "trireme.fullname" . | len) -}}
{{- if gt (int $least) 253 -}}
{{- fail (printf "clusterDomain: names of pods, as %s-read-98.%s, would be longer than the 253 characters that DNS allows" (include "trireme.fullname" .) (include "trireme.domain" .)) -}}
{{- end -}}
{{- range list (list "monitoring.serviceMonitor.labels" .Values.monitoring.serviceMonitor.labels) (list "monitoring.rules.labels" .Values.monitoring.rules.labels) (list "monitoring.dashboards.labels" .Values.monitoring.dashboards.labels) -}}
{{- include "trireme.refuseLabels" (dict "of" (index . 0) "labels" (index . 1)) -}}
{{- end -}}
{{- if hasKey ((.Values.backup.persistence).annotations | default dict) "helm.sh/resource-policy" -}}
{{- fail "backup.persistence.annotations: helm.sh/resource-policy is the chart's own: the claim stays when the release is removed" -}}
{{- end -}}
{{- end -}}
