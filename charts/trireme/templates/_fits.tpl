{{/* Refuses labels that the chart sets itself: what selects by them would find others, or nothing. {of, labels} */}}
{{- define "trireme.refuseLabels" -}}
{{- range $key, $_ := .labels -}}
{{- if has $key (list "app.kubernetes.io/name" "app.kubernetes.io/instance" "app.kubernetes.io/component" "app.kubernetes.io/version" "app.kubernetes.io/managed-by" "helm.sh/chart") -}}
{{- fail (printf "%s: the label %s is the chart's own, by which objects are selected: take another one" $.of $key) -}}
{{- end -}}
{{- if gt (len (regexFind "^[^/]*/" $key)) 254 -}}
{{- fail (printf "%s: what is before the slash in %s is longer than 253 characters" $.of $key) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* What each workload's values say of its pods, before they are put into one. */}}
{{- define "trireme.refusePods" -}}
{{- $all := list (list "" .Values) -}}
{{- $all = append $all (list "readReplicas." .Values.readReplicas) -}}
{{- $all = append $all (list "backup." .Values.backup) -}}
{{- with (.Values.upgrade).check }}{{ $all = append $all (list "upgrade.check." .) }}{{ end -}}
{{- with .Values.restore }}{{ $all = append $all (list "restore." .) }}{{ end -}}
{{- range $all -}}
{{- $of := index . 0 -}}
{{- $values := index . 1 -}}
{{- $own := get (dict "backup." (list "backup") "upgrade.check." (list "check" "prepare")) $of | default (list "trireme") -}}
{{- with $values -}}
{{- include "trireme.refuseLabels" (dict "of" (printf "%spodLabels" $of) "labels" .podLabels) -}}
{{- range $key, $_ := .podAnnotations -}}
{{- if or (hasPrefix "trireme.io/" $key) (eq $key "kubectl.kubernetes.io/default-container") -}}
{{- fail (printf "%spodAnnotations: the annotation %s is the chart's own: take another one%s" $of $key (ternary "; settings of the server are in settings" "" (eq $key "trireme.io/settings"))) -}}
{{- end -}}
{{- end -}}
{{- /* Also those that the chart does not use as it is now: another value would not go with them later. */}}
{{- range .extraVolumes -}}
{{- if has .name (list "data" "tmp" "config" "root" "peer-tls" "peer-tls-new" "etcd-tls" "http-token" "http-token-now" "client-tls" "client-ca" "trace-ca" "users" "backups" "password" "ca") -}}
{{- fail (printf "%sextraVolumes: the name %s is that of a volume of the chart's own: take another one" $of .name) -}}
{{- end -}}
{{- end -}}
{{- range $key := list "sidecars" "initContainers" -}}
{{- range index $values $key -}}
{{- if has .name $own -}}
{{- fail (printf "%s%s: the name %s is that of a container of the chart's own: take another one" $of $key .name) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- range .extraEnvFrom -}}
{{- if hasPrefix "TRIREME_" (.prefix | default "") -}}
{{- fail (printf "%sextraEnvFrom: the prefix %s makes settings of the server of what is there: write them in settings" $of .prefix) -}}
{{- end -}}
{{- end -}}
{{- range .extraEnv -}}
{{- if has .name (list "POD_NAME" "POD_NODE_NAME" "OTEL_RESOURCE_ATTRIBUTES") -}}
{{- fail (printf "%sextraEnv: %s is a variable of the chart's own: take another one" $of .name) -}}
{{- end -}}
{{- if hasPrefix "TRIREME_" .name -}}
{{- fail (printf "%sextraEnv: %s is a setting of the server: write it as settings.%s, or by the value of the chart that there is for it" $of .name (trimPrefix "TRIREME_" .name | lower)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/*
Refuses parts of pods that do not go together: {root, text}, text being manifests as they are rendered. They are looked at as they will be, so that names of the chart's own
volumes, containers and ports are known by what is there.
*/}}
{{- define "trireme.fits" -}}
{{- range regexSplit "(?m)^---$" .text -1 -}}
{{- if regexMatch "(?m)^kind: (StatefulSet|Job|CronJob)$" . -}}
{{- $object := fromYaml . -}}
{{- $spec := $object.spec -}}
{{- if eq $object.kind "CronJob" }}{{ $spec = $spec.jobTemplate.spec }}{{ end -}}
{{- $of := get (dict "replica" "readReplicas." "backup" "backup." "backup-volume" "backup." "check" "upgrade.check." "prepare" "upgrade.check." "restore" "restore.")
  (get $spec.template.metadata.labels "app.kubernetes.io/component") -}}
{{- $claims := list -}}
{{- range $spec.volumeClaimTemplates }}{{ $claims = append $claims .metadata.name }}{{ end -}}
{{- include "trireme.podFits" (dict "of" $of "pod" $spec.template.spec "claims" $claims) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* {of, pod, claims}: of is what the values' names begin with. */}}
{{- define "trireme.podFits" -}}
{{- $volumes := .claims -}}
{{- range .pod.volumes -}}
{{- if has .name $volumes -}}
{{- fail (printf "%sextraVolumes: the name %s comes twice, or is that of a volume of the chart's own (%s): take another one" $.of .name (join ", " $volumes)) -}}
{{- end -}}
{{- $kinds := list }}{{ range $kind, $is := omit . "name" }}{{ if not (kindIs "invalid" $is) }}{{ $kinds = append $kinds $kind }}{{ end }}{{ end -}}
{{- if gt (len $kinds) 1 }}{{ fail (printf "%sextraVolumes: %s is several kinds of volume at once (%s): it can be one" $.of .name ($kinds | sortAlpha | join ", ")) }}{{ end -}}
{{- $volumes = append $volumes .name -}}
{{- include "trireme.volumeFits" (dict "of" $.of "volume" .) -}}
{{- end -}}
{{- $sysctls := list -}}
{{- range (.pod.securityContext).sysctls -}}
{{- if has .name $sysctls }}{{ fail (printf "%spodSecurityContext.sysctls: %s comes twice" $.of .name) }}{{ end -}}
{{- $sysctls = append $sysctls .name -}}
{{- end -}}
{{- $spreads := list -}}
{{- range .pod.topologySpreadConstraints -}}
{{- $is := printf "%s, %s" .topologyKey .whenUnsatisfiable -}}
{{- if has $is $spreads }}{{ fail (printf "%stopologySpreadConstraints: there are two with topologyKey and whenUnsatisfiable %s: leave one" $.of $is) }}{{ end -}}
{{- $spreads = append $spreads $is -}}
{{- end -}}
{{- $names := list -}}
{{- $ports := dict -}}
{{- $ownPorts := dict -}}
{{- range $kind, $list := dict "a sidecars" (.pod.containers | default list) "b initContainers" (.pod.initContainers | default list) -}}
{{- $value := printf "%s%s" $.of (regexReplaceAll "^. " $kind "") -}}
{{- range $i, $c := $list -}}
{{- $own := and (eq $kind "a sidecars") (eq $i 0) -}}
{{- if has .name $names }}{{ fail (printf "%s: the name %s comes twice, or is that of a container of the chart's own (%s): take another one" $value .name (join ", " $names)) }}{{ end -}}
{{- $names = append $names .name -}}
{{- $stays := or (eq $kind "a sidecars") (eq (.restartPolicy | default "") "Always") -}}
{{- if not $stays -}}
{{- range list "livenessProbe" "readinessProbe" "startupProbe" "lifecycle" -}}
{{- if index $c . }}{{ fail (printf "%s: %s has a %s, which only containers with restartPolicy: Always have" $value $c.name .) }}{{ end -}}
{{- end -}}
{{- end -}}
{{- include "trireme.containerFits" (dict "of" $.of "value" $value "own" $own "c" . "volumes" $volumes "pod" $.pod) -}}
{{- $here := list -}}
{{- range .ports -}}
{{- with .name -}}
{{- if has . $here }}{{ fail (printf "%s: %s has two ports of the name %s" $value $c.name .) }}{{ end -}}
{{- $here = append $here . -}}
{{- end -}}
{{- $is := printf "%v/%s" .containerPort (.protocol | default "TCP") -}}
{{- $keys := list $is -}}
{{- /* Names are found by Services, which are of the chart's own container. */}}
{{- if and .name (or $own (hasKey $ownPorts .name)) }}{{ $keys = prepend $keys .name }}{{ end -}}
{{- with .hostPort }}{{ $keys = append $keys (printf "of the node %v/%s" . ($is | regexFind "[A-Z]+$")) }}{{ end -}}
{{- range $key := $keys -}}
{{- if and $stays (hasKey $ports $key) }}{{ fail (printf "%s: %s has the port %s, as %s has: containers of a pod share its address, and the Services find ports by their names" $value $c.name $key (get $ports $key)) }}{{ end -}}
{{- if $stays }}{{ $_ := set $ports $key $c.name }}{{ end -}}
{{- if $own }}{{ $_ := set $ownPorts $key true }}{{ end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* {of, value, own, c, volumes, pod}: value is where the container is from, own whether it is the chart's. */}}
{{- define "trireme.containerFits" -}}
{{- $c := .c -}}
{{- $env := ternary (printf "%sextraEnv" .of) (printf "%s: %s: env" .value .c.name) .own -}}
{{- $names := list -}}
{{- range .c.env -}}
{{- if has .name $names }}{{ fail (printf "%s: %s comes twice, or is the chart's own: take one of them away" $env .name) }}{{ end -}}
{{- $names = append $names .name -}}
{{- if and .value .valueFrom }}{{ fail (printf "%s: %s has a value and valueFrom: it can have one" $env .name) }}{{ end -}}
{{- end -}}
{{- $mounts := ternary (printf "%sextraVolumeMounts" .of) (printf "%s: %s: volumeMounts" .value .c.name) .own -}}
{{- $paths := list -}}
{{- $readOnly := list -}}
{{- range .c.volumeMounts -}}
{{- if regexMatch `(^|/)[.][.](/|$)` .mountPath }}{{ fail (printf "%s: mountPath %s has '..': write the path that is meant" $mounts .mountPath) }}{{ end -}}
{{- if and .subPath .subPathExpr }}{{ fail (printf "%s: the mount at %s has a subPath and a subPathExpr: it can have one" $mounts .mountPath) }}{{ end -}}
{{- range list (.subPath | default "") (.subPathExpr | default "") -}}
{{- if or (hasPrefix "/" .) (regexMatch `(^|/)[.][.](/|$)` .) }}{{ fail (printf "%s: subPath %s is no path within the volume: it does not begin with '/', and has no '..'" $mounts .) }}{{ end -}}
{{- end -}}
{{- if and (eq (.mountPropagation | default "") "Bidirectional") (not (($.c.securityContext).privileged)) }}{{ fail (printf "%s: mountPropagation Bidirectional at %s goes with privileged containers alone" $mounts .mountPath) }}{{ end -}}
{{- $path := clean (printf "/%s" .mountPath) -}}
{{- if has $path $paths }}{{ fail (printf "%s: two volumes are mounted at %s, or one of the chart's own is there (%s): take another mountPath" $mounts .mountPath (join ", " $paths)) }}{{ end -}}
{{- if not (has .name $.volumes) }}{{ fail (printf "%s: there is no volume %s to be mounted at %s: give %sextraVolumes one of that name. There are %s" $mounts .name .mountPath $.of (join ", " $.volumes)) }}{{ end -}}
{{- if and $.own (or (has $path (list "/trireme" "/etc" "/usr" "/bin" "/lib" "/var" "/var/lib" "/sys" "/dev" "/var/run/secrets/kubernetes.io/serviceaccount" "/run/secrets/kubernetes.io/serviceaccount")) (regexMatch "^(/var/lib/trireme/data|/trireme)(/|$)" $path)) }}{{ fail (printf "%s: at %s a volume would hide the program, its data or what it needs: take another mountPath" $mounts .mountPath) }}{{ end -}}
{{- if or (eq $path "/") (regexMatch "^/proc(/|$)" $path) }}{{ fail (printf "%s: at %s a volume would hide the program: take another mountPath" $mounts .mountPath) }}{{ end -}}
{{- if $.own -}}
{{- range $readOnly }}{{ if hasPrefix . $path }}{{ fail (printf "%s: %s is within %s, a volume of the chart's own that is only read: nothing can be mounted there. Take another mountPath" $mounts $path (trimSuffix "/" .)) }}{{ end }}{{ end -}}
{{- if .readOnly }}{{ $readOnly = append $readOnly (printf "%s/" $path) }}{{ end -}}
{{- end -}}
{{- $paths = append $paths $path -}}
{{- end -}}
{{- include "trireme.devicesFit" . -}}
{{- include "trireme.probesFit" . -}}
{{- $resources := ternary (printf "%s%s" .of (ternary "claimResources" "resources" (eq .c.name "claim"))) (printf "%s: %s: resources" .value .c.name) .own -}}
{{- $limits := (.c.resources).limits | default dict -}}
{{- $requests := (.c.resources).requests | default dict -}}
{{- range $what, $limit := $limits -}}
{{- $most := include "trireme.amount" $limit | float64 -}}
{{- if hasKey $requests $what -}}
{{- $asked := include "trireme.amount" (get $requests $what) | float64 -}}
{{- if gt $asked $most -}}
{{- fail (printf "%s.requests.%s: %v is more than %s.limits.%s, %v: give it a larger limit, or ask for less" $resources $what (get $requests $what) $resources $what $limit) -}}
{{- end -}}
{{- if and (regexMatch "/|^hugepages-" $what) (ne $asked $most) -}}
{{- fail (printf "%s.requests.%s: it is %v, and %s.limits.%s is %v: of these Kubernetes wants both to be the same" $resources $what (get $requests $what) $resources $what $limit) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- range $what, $asked := $requests -}}
{{- if and (regexMatch "/|^hugepages-" $what) (not (hasKey $limits $what)) }}{{ fail (printf "%s.requests.%s: it needs a limit of the same size" $resources $what) }}{{ end -}}
{{- end -}}
{{- range $which, $all := dict "limits" $limits "requests" $requests -}}
{{- range $what, $size := $all -}}
{{- $amount := include "trireme.amount" $size | float64 -}}
{{- if gt $amount 9.2e18 }}{{ fail (printf "%s.%s.%s: %v is more than Kubernetes can count" $resources $which $what $size) }}{{ end -}}
{{- if hasPrefix "hugepages-" $what -}}
{{- $page := include "trireme.amount" (trimPrefix "hugepages-" $what) | float64 | int64 -}}
{{- if or (eq $page 0) (ne (mod (int64 $amount) (max 1 $page)) 0) }}{{ fail (printf "%s.%s.%s: %v is no multiple of its pages" $resources $which $what $size) }}{{ end -}}
{{- end -}}
{{- if or (and (eq $what "memory") (lt $amount 6291456.0) (or (eq $which "limits") (gt $amount 0.0))) (and (eq $what "cpu") (eq $which "limits") (lt $amount 0.001)) -}}
{{- fail (printf "%s.%s.%s: with %v no container starts; memory is in bytes, as 512Mi, and cpu in processors, as 500m. For no limit leave it out" $resources $which $what $size) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- include "trireme.securityFits" . -}}
{{- end -}}

{{- define "trireme.securityFits" -}}
{{- $value := ternary (printf "%ssecurityContext" .of) (printf "%s: %s: securityContext" .value .c.name) .own -}}
{{- $is := mergeOverwrite (pick (.pod.securityContext | default dict) "runAsUser" "runAsNonRoot") (.c.securityContext | default dict) -}}
{{- if and $is.runAsNonRoot (hasKey $is "runAsUser") (not (kindIs "invalid" $is.runAsUser)) (eq (int64 $is.runAsUser) 0) -}}
{{- fail (printf "%s: runAsUser is 0 and runAsNonRoot true, by it or by podSecurityContext.runAsUser and podSecurityContext.runAsNonRoot: no such container starts" $value) -}}
{{- end -}}
{{- if and (hasKey $is "allowPrivilegeEscalation") (not $is.allowPrivilegeEscalation) -}}
{{- if $is.privileged }}{{ fail (printf "%s: privileged goes with allowPrivilegeEscalation: true alone" $value) }}{{ end -}}
{{- range (($is.capabilities).add) -}}
{{- if has . (list "CAP_SYS_ADMIN" "SYS_ADMIN") }}{{ fail (printf "%s: the capability %s goes with allowPrivilegeEscalation: true alone" $value .) }}{{ end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* A path within a volume: {of, name, path}. */}}
{{- define "trireme.pathFits" -}}
{{- if or (hasPrefix "/" .path) (regexMatch `(^|/)[.][.](/|$)` .path) -}}
{{- fail (printf "%sextraVolumes: %s: the path %s is not within the volume: it does not begin with '/', and has no '..'" .of .name .path) -}}
{{- end -}}
{{- end -}}

{{/* {of, volume}. */}}
{{- define "trireme.volumeFits" -}}
{{- $of := .of -}}
{{- $name := .volume.name -}}
{{- with (.volume.hostPath).path -}}
{{- if regexMatch `(^|/)[.][.](/|$)` . }}{{ fail (printf "%sextraVolumes: %s: hostPath has '..': write the path that is meant" $of $name) }}{{ end -}}
{{- end -}}
{{- $lists := list (.volume.secret).items (.volume.configMap).items (.volume.downwardAPI).items -}}
{{- $all := list -}}
{{- range (.volume.projected).sources -}}
{{- range list (.secret).items (.configMap).items (.downwardAPI).items }}{{ if . }}{{ $all = concat $all . }}{{ end }}{{ end -}}
{{- range list .serviceAccountToken .clusterTrustBundle }}{{ if . }}{{ $all = append $all . }}{{ end }}{{ end -}}
{{- end -}}
{{- range append $lists $all -}}
{{- $paths := list -}}
{{- range . -}}
{{- include "trireme.pathFits" (dict "of" $of "name" $name "path" .path) -}}
{{- if has (clean .path) $paths }}{{ fail (printf "%sextraVolumes: %s: the path %s comes twice" $of $name .path) }}{{ end -}}
{{- $paths = append $paths (clean .path) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Devices are of claims for blocks: what has a file system is mounted. As trireme.containerFits. */}}
{{- define "trireme.devicesFit" -}}
{{- range .c.volumeDevices -}}
{{- $name := .name -}}
{{- $blocks := false -}}
{{- range $.pod.volumes -}}
{{- if and (eq .name $name) (or .persistentVolumeClaim (eq ((((.ephemeral).volumeClaimTemplate).spec).volumeMode | default "") "Block")) }}{{ $blocks = true }}{{ end -}}
{{- end -}}
{{- if not $blocks }}{{ fail (printf "%s: %s: volumeDevices: %s is no claim with volumeMode: Block: mount it by volumeMounts" $.value $.c.name $name) }}{{ end -}}
{{- end -}}
{{- end -}}

{{/* What the API demands of probes and hooks by where they are. As trireme.containerFits. */}}
{{- define "trireme.probesFit" -}}
{{- range $key := list "livenessProbe" "startupProbe" -}}
{{- with index $.c $key -}}
{{- if gt (int (.successThreshold | default 1)) 1 }}{{ fail (printf "%s: %s: %s.successThreshold: it can be 1 alone" $.value $.c.name $key) }}{{ end -}}
{{- end -}}
{{- end -}}
{{- if (.c.readinessProbe).terminationGracePeriodSeconds }}{{ fail (printf "%s: %s: readinessProbe.terminationGracePeriodSeconds: no container is ended by this probe, which has no such field" .value .c.name) }}{{ end -}}
{{- $grace := .pod.terminationGracePeriodSeconds | default 30 | int -}}
{{- range $key := list "preStop" "postStart" -}}
{{- with (index ($.c.lifecycle | default dict) $key) -}}
{{- if gt (int (.sleep).seconds) $grace }}{{ fail (printf "%s: %s: lifecycle.%s.sleep: %d s is longer than the %d s that pods have to end" $.value $.c.name $key (int .sleep.seconds) $grace) }}{{ end -}}
{{- end -}}
{{- end -}}
{{- end -}}
