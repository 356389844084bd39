package chart

import (
	"strings"
	"testing"

	common "helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
)

// TestRefused: what cannot work is refused while the chart is rendered, before anything is made or changed, and the answer names the value and says why.
func TestRefused(t *testing.T) {
	long := func(n int) string { return strings.Repeat("a", n) }
	for _, c := range []struct{ values, says string }{
		// Labels and annotations.
		{"podLabels: {team: " + long(64) + "}", "podLabels/team"},
		{"podLabels: {team: 'a b'}", "podLabels/team"},
		{"podLabels: {team: 1}", "podLabels/team"},
		{"podLabels: {'a b': c}", "podLabels"},
		{"podLabels: {" + long(64) + ": c}", "podLabels"},
		{"podLabels: {app.kubernetes.io/instance: other}", "podLabels: the label app.kubernetes.io/instance is the chart's own"},
		{"readReplicas: {podLabels: {app.kubernetes.io/component: member}}", "readReplicas.podLabels: the label"},
		{"backup: {podLabels: {app.kubernetes.io/name: trireme}}", "backup.podLabels: the label"},
		{"upgrade: {check: {podLabels: {app.kubernetes.io/name: trireme}}}", "upgrade.check.podLabels: the label"},
		{"restore: {podLabels: {app.kubernetes.io/name: trireme}}", "restore.podLabels: the label"},
		{"restore: {podLabels: {a: " + long(64) + "}}", "restore/podLabels/a"},
		{"podAnnotations: {'a b': c}", "podAnnotations"},
		{"podAnnotations: {trireme.io/settings: port=1}", "podAnnotations: the annotation trireme.io/settings is the chart's own: take another one; settings of the server"},
		{"podAnnotations: {kubectl.kubernetes.io/default-container: a}", "podAnnotations: the annotation kubectl"},
		{"service: {annotations: {'a b': c}}", "service/annotations"},
		{"persistence: {annotations: {'a b': c}}", "persistence/annotations"},
		{"backup: {persistence: {annotations: {helm.sh/resource-policy: delete}}}", "backup.persistence.annotations: helm.sh/resource-policy"},
		{"monitoring: {rules: {labels: {app.kubernetes.io/name: a}}}", "monitoring.rules.labels: the label"},
		{"monitoring: {rules: {alertLabels: {a-b: c}}}", "alertLabels"},
		{"nodeSelector: {disk: 'a b'}", "nodeSelector/disk"},
		// Parts of pods.
		{"extraVolumes: [{name: a, emptyDir: {}}, {name: a, emptyDir: {}}]", "extraVolumes: the name a comes twice"},
		{"extraVolumes: [{name: data, emptyDir: {}}]", "extraVolumes: the name data is that of a volume of the chart's own"},
		{"readReplicas: {count: 1, extraVolumes: [{name: tmp, emptyDir: {}}]}", "readReplicas.extraVolumes: the name tmp"},
		{"backup: {enabled: true, extraVolumes: [{name: backups, emptyDir: {}}]}", "backup.extraVolumes: the name backups"},
		{"upgrade: {check: {extraVolumes: [{name: config, emptyDir: {}}]}}", "upgrade.check.extraVolumes: the name config"},
		{"extraVolumes: [{name: a, emptyDir: {}, configMap: {name: b}}]", "extraVolumes: a is several kinds of volume at once (configMap, emptyDir)"},
		{"extraVolumes: [{name: a, emptyDirs: {}}]", "extraVolumes/0"},
		{"extraVolumes: [{name: A_b, emptyDir: {}}]", "extraVolumes/0/name"},
		{"extraVolumeMounts: [{name: a, mountPath: /a}]", "extraVolumeMounts: there is no volume a"},
		{"{extraVolumes: [{name: a, emptyDir: {}}], extraVolumeMounts: [{name: a, mountPath: /tmp/}]}", "extraVolumeMounts: two volumes are mounted at /tmp/"},
		{"{extraVolumes: [{name: a, emptyDir: {}}], extraVolumeMounts: [{name: a, mountPath: /a}, {name: a, mountPath: /a}]}", "extraVolumeMounts: two volumes are mounted at /a"},
		{"{extraVolumes: [{name: a, emptyDir: {}}], extraVolumeMounts: [{name: a, mountPath: /var/lib/trireme/data}]}", "extraVolumeMounts: at /var/lib/trireme/data a volume would hide"},
		{"{extraVolumes: [{name: a, emptyDir: {}}], extraVolumeMounts: [{name: a, mountPath: /}]}", "extraVolumeMounts: at / a volume"},
		{"extraEnv: [{name: A, value: '1'}, {name: A, value: '2'}]", "extraEnv: A comes twice"},
		{"extraEnv: [{name: POD_NAME, value: '1'}]", "extraEnv: POD_NAME is a variable of the chart's own"},
		{"extraEnv: [{name: TRIREME_PORT, value: '1'}]", "extraEnv: TRIREME_PORT is a setting of the server: write it as settings.port"},
		{"extraEnv: [{name: A, value: 1}]", "extraEnv/0/value"},
		{"extraEnv: [{name: A, value: a, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]", "extraEnv: A has a value and valueFrom"},
		{"extraEnvFrom: [{prefix: a}]", "extraEnvFrom/0"},
		{"{backup: {enabled: true, ca: {existingSecret: a}, extraEnv: [{name: SSL_CERT_FILE, value: a}]}}", "backup.extraEnv: SSL_CERT_FILE comes twice"},
		{"sidecars: [{name: trireme, image: a}]", "sidecars: the name trireme is that of a container of the chart's own"},
		{"{sidecars: [{name: a, image: a}], initContainers: [{name: a, image: a}]}", "initContainers: the name a comes twice"},
		{"sidecars: [{name: a}]", "sidecars/0"},
		{"initContainers: [{name: a, image: b, readinessProbe: {exec: {command: [c]}}}]", "initContainers: a has a readinessProbe"},
		{"sidecars: [{name: a, image: a, ports: [{name: mysql, containerPort: 1000}]}]", "sidecars: a has the port mysql, as trireme has"},
		{"sidecars: [{name: a, image: a, ports: [{containerPort: 18080}]}]", "sidecars: a has the port 18080/TCP, as trireme has"},
		{"sidecars: [{name: a, image: a, volumeMounts: [{name: b, mountPath: /b}]}]", "sidecars: a: volumeMounts: there is no volume b"},
		{"sidecars: [{name: a, image: a, env: [{name: B}, {name: B}]}]", "sidecars: a: env: B comes twice"},
		{"sidecars: [{name: a, image: a, resources: {requests: {cpu: 2}, limits: {cpu: 1}}}]", "sidecars: a: resources.requests.cpu: 2 is more"},
		{"backup: {enabled: true, initContainers: [{name: backup, image: a}]}", "backup.initContainers: the name backup"},
		{"topologySpreadConstraints: [{maxSkew: 0, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}]", "topologySpreadConstraints/0/maxSkew"},
		{"topologySpreadConstraints: [{maxSkew: 1, whenUnsatisfiable: DoNotSchedule}]", "topologySpreadConstraints/0': missing property 'topologyKey'"},
		{"topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: Never}]", "topologySpreadConstraints/0/whenUnsatisfiable"},
		{"topologySpreadConstraints: [{maxSkew: 1, topologyKey: a, whenUnsatisfiable: DoNotSchedule}, {maxSkew: 2, topologyKey: a, whenUnsatisfiable: DoNotSchedule}]", "topologySpreadConstraints: there are two"},
		{"affinity: {nodeAffinities: {}}", "affinity"},
		{"affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{labelSelector: {}}]}}", "missing property 'topologyKey'"},
		{"tolerations: [{operator: Is}]", "tolerations/0/operator"},
		{"tolerations: [{key: a, tolerationSeconds: 5}]", "tolerations/0"},
		{"readReplicas: {tolerations: [{key: a, effect: Never}]}", "tolerations/0/effect"},
		{"securityContext: {runAsUser: 0}", "securityContext: runAsUser is 0 and runAsNonRoot true"},
		{"securityContext: {privileged: true}", "securityContext: privileged goes with"},
		{"podSecurityContext: {runAsUsers: 7}", "podSecurityContext"},
		{"tolerations: [null]", "tolerations/0': got null"},
		{"sidecars: [{name: a, image: a, imagePullPolicy: Sometimes}]", "sidecars/0/imagePullPolicy"},
		{"enabled: maybe", "enabled"},
		{"tolerations: [{key: a, operator: Gt, value: '1'}]", "tolerations/0/operator"},
		{"extraVolumes: [{name: a, downwardAPI: {items: [{path: a, fieldRef: {fieldPath: status.podIP}}]}}]", "downwardAPI/items/0/fieldRef/fieldPath"},
		{"sidecars: [{name: a, image: a, securityContext: {capabilities: {add: [NET ADMIN]}}}]", "capabilities/add/0"},
		{"resources: {limits: {memory: 2Gi, hugepages-2Mi: 3Mi}, requests: {hugepages-2Mi: 3Mi}}", "hugepages-2Mi: 3Mi is no multiple of its pages"},
		{"{extraVolumes: [{name: a, emptyDir: {}}], extraVolumeMounts: [{name: a, mountPath: /trireme}]}", "extraVolumeMounts: at /trireme a volume would hide the program"},
		{"{extraVolumes: [{name: a, emptyDir: {}}], extraVolumeMounts: [{name: a, mountPath: /etc}]}", "extraVolumeMounts: at /etc a volume would hide the program"},
		{"{extraVolumes: [{name: a, emptyDir: {}}], extraVolumeMounts: [{name: a, mountPath: /var/lib}]}", "extraVolumeMounts: at /var/lib a volume would hide the program"},
		{"{extraVolumes: [{name: a, emptyDir: {}}], extraVolumeMounts: [{name: a, mountPath: /usr}]}", "extraVolumeMounts: at /usr a volume would hide the program"},
		{"{extraVolumes: [{name: a, emptyDir: {}}], extraVolumeMounts: [{name: a, mountPath: /bin}]}", "extraVolumeMounts: at /bin a volume would hide the program"},
		{"{extraVolumes: [{name: a, emptyDir: {}}], extraVolumeMounts: [{name: a, mountPath: /sys}]}", "extraVolumeMounts: at /sys a volume would hide the program"},
		{"{extraVolumes: [{name: a, emptyDir: {}}], extraVolumeMounts: [{name: a, mountPath: /dev}]}", "extraVolumeMounts: at /dev a volume would hide the program"},
		{"{extraVolumes: [{name: a, emptyDir: {}}], extraVolumeMounts: [{name: a, mountPath: /proc/1}]}", "extraVolumeMounts: at /proc/1 a volume would hide the program"},
		{"{extraVolumes: [{name: a, emptyDir: {}}], extraVolumeMounts: [{name: a, mountPath: /var/}]}", "extraVolumeMounts: at /var/ a volume would hide the program"},
		{"{extraVolumes: [{name: a, emptyDir: {}}], extraVolumeMounts: [{name: a, mountPath: tmp}]}", "extraVolumeMounts/0/mountPath"},
		{"{extraVolumes: [{name: a, emptyDir: {}}], extraVolumeMounts: [{name: a, mountPath: /a/../etc}]}", "extraVolumeMounts: mountPath /a/../etc has '..'"},
		{"{extraVolumes: [{name: a, emptyDir: {}}], extraVolumeMounts: [{name: a, mountPath: /etc/trireme/a}]}", "extraVolumeMounts: /etc/trireme/a is within /etc/trireme, a volume of the chart's own that is only read"},
		{"{extraVolumes: [{name: a, emptyDir: {}}], extraVolumeMounts: [{name: a, mountPath: /a, subPath: ../b}]}", "extraVolumeMounts: subPath ../b is no path within the volume"},
		{"{extraVolumes: [{name: a, emptyDir: {}}], extraVolumeMounts: [{name: a, mountPath: /a, subPath: b, subPathExpr: c}]}", "extraVolumeMounts: the mount at /a has a subPath and a subPathExpr"},
		{"{extraVolumes: [{name: a, emptyDir: {}}], extraVolumeMounts: [{name: a, mountPath: /a, mountPropagation: Bidirectional}]}", "extraVolumeMounts: mountPropagation Bidirectional at /a goes with privileged"},
		{"backup: {enabled: true, extraVolumes: [{name: a, emptyDir: {}}], extraVolumeMounts: [{name: a, mountPath: /etc}]}", "backup.extraVolumeMounts: at /etc"},
		{"{sidecars: [{name: a, image: a, volumeMounts: [{name: tmp, mountPath: /}]}]}", "sidecars: a: volumeMounts: at / a volume"},
		{"sidecars: [{name: a, image: a, volumeDevices: [{name: data, devicePath: /dev/x}]}]", "sidecars: a: volumeDevices: data is no claim with volumeMode: Block"},
		{"sidecars: [{name: a, image: 'x y'}]", "sidecars/0/image"},
		{"extraVolumes: [{name: a, configMap: {name: A b}}]", "extraVolumes/0/configMap/name"},
		{"extraVolumes: [{name: a, secret: {secretName: A}}]", "extraVolumes/0/secret/secretName"},
		{"extraVolumes: [{name: a, persistentVolumeClaim: {claimName: A}}]", "extraVolumes/0/persistentVolumeClaim/claimName"},
		{"extraEnvFrom: [{configMapRef: {name: A}}]", "extraEnvFrom/0/configMapRef/name"},
		{"extraEnvFrom: [{prefix: TRIREME_, configMapRef: {name: a}}]", "extraEnvFrom: the prefix TRIREME_ makes settings"},
		{"extraEnv: [{name: A, valueFrom: {configMapKeyRef: {name: a, key: b c}}}]", "extraEnv/0/valueFrom/configMapKeyRef/key"},
		{"extraEnv: [{name: A, valueFrom: {fieldRef: {fieldPath: metadata.foo}}}]", "extraEnv/0/valueFrom/fieldRef/fieldPath"},
		{"extraEnv: [{name: A, valueFrom: {resourceFieldRef: {resource: limits.foo}}}]", "extraEnv/0/valueFrom/resourceFieldRef/resource"},
		{"sidecars: [{name: a, image: a, livenessProbe: {tcpSocket: {port: 70000}}}]", "sidecars/0/livenessProbe/tcpSocket/port"},
		{"sidecars: [{name: a, image: a, livenessProbe: {httpGet: {port: nosuch_port}}}]", "sidecars/0/livenessProbe/httpGet/port"},
		{"sidecars: [{name: a, image: a, livenessProbe: {successThreshold: 3, httpGet: {port: 80}}}]", "sidecars: a: livenessProbe.successThreshold: it can be 1 alone"},
		{"sidecars: [{name: a, image: a, livenessProbe: {exec: {command: []}}}]", "sidecars/0/livenessProbe/exec/command"},
		{"sidecars: [{name: a, image: a, livenessProbe: {exec: {}}}]", "sidecars/0/livenessProbe/exec"},
		{"sidecars: [{name: a, image: a, readinessProbe: {terminationGracePeriodSeconds: 3, httpGet: {port: 80}}}]", "sidecars: a: readinessProbe.terminationGracePeriodSeconds"},
		{"sidecars: [{name: a, image: a, lifecycle: {preStop: {sleep: {seconds: 100000}}}}]", "sidecars: a: lifecycle.preStop.sleep: 100000 s is longer than the 360 s"},
		{"sidecars: [{name: a, image: a, ports: [{containerPort: 81, hostPort: 80}]}, {name: b, image: a, ports: [{containerPort: 82, hostPort: 80}]}]", "sidecars: b has the port of the node 80/TCP, as a has"},
		{"sidecars: [{name: a, image: a, ports: [{name: b, containerPort: 81}, {name: b, containerPort: 82}]}]", "sidecars: a has two ports of the name b"},
		{"sidecars: [{name: a, image: a, resources: {claims: [{name: gpu}]}}]", "sidecars/0/resources/claims"},
		{"affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Gt, values: [b]}]}]}}}", "matchExpressions/0/values/0"},
		{"affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchFields: [{key: metadata.labels, operator: In, values: [b]}]}]}}}", "matchFields/0/key"},
		{"tolerations: [{key: a b}]", "tolerations/0/key"},
		{"tolerations: [{key: a, operator: Equal, value: x y}]", "tolerations/0/value"},
		{"topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule, matchLabelKeys: [a]}]", "topologySpreadConstraints/0': missing property 'labelSelector'"},
		{"podSecurityContext: {supplementalGroups: [-1]}", "podSecurityContext/supplementalGroups/0"},
		{"podSecurityContext: {sysctls: [{name: kernel.a, value: b}, {name: kernel.a, value: c}]}", "podSecurityContext.sysctls: kernel.a comes twice"},
		{"extraVolumes: [{name: a, ephemeral: {volumeClaimTemplate: {spec: {accessModes: [ReadWriteOnce]}}}}]", "missing property 'resources'"},
		{"extraVolumes: [{name: a, ephemeral: {volumeClaimTemplate: {spec: {accessModes: [RWO], resources: {requests: {storage: 1Gi}}}}}}]", "spec/accessModes/0"},
		{"extraVolumes: [{name: a, projected: {sources: [{serviceAccountToken: {path: a, expirationSeconds: 10}}]}}]", "expirationSeconds"},
		{"extraVolumes: [{name: a, projected: {sources: [{serviceAccountToken: {path: a}}, {configMap: {name: b, items: [{key: k, path: a}]}}]}}]", "extraVolumes: a: the path a comes twice"},
		{"extraVolumes: [{name: a, configMap: {name: b, items: [{key: k, path: /abs}]}}]", "configMap/items/0/path"},
		{"extraVolumes: [{name: a, configMap: {name: b, items: [{key: k, path: a/../../b}]}}]", "extraVolumes: a: the path a/../../b is not within the volume"},
		{"extraVolumes: [{name: a, downwardAPI: {items: [{path: a}]}}]", "downwardAPI/items/0"},
		{"extraVolumes: [{name: a, hostPath: {path: /a/../x}}]", "extraVolumes: a: hostPath has '..'"},
		{"extraVolumes: [{name: a, nfs: {server: a, path: rel}}]", "extraVolumes/0/nfs/path"},
		{"upgrade: {check: {initContainers: [{name: prepare, image: a}]}}", "upgrade.check.initContainers: the name prepare"},
		{"priorityClassName: High", "priorityClassName"},
		// Services.
		{"service: {nodePort: 30306}", "service.nodePort: a Service of type ClusterIP has no port on nodes"},
		{"service: {type: NodePort, nodePort: 80}", "service.nodePort: 80 is not one of 30000-32767"},
		{"{service: {type: NodePort, nodePort: 31000}, nodePortRange: 20000-30000}", "service.nodePort: 31000 is not one of 20000-30000"},
		{"nodePortRange: 9-8", "nodePortRange: 9-8 is no range"},
		{"{service: {type: NodePort, nodePort: 30306}, readService: {type: NodePort, nodePort: 30306}}", "service.nodePort and readService.nodePort: both are 30306"},
		{"service: {port: 17000}", "service.port: 17000 is the port of gRPC"},
		{"service: {port: 18080}", "service.port: 18080 is the port of gRPC (service.grpc) or HTTP"},
		{"readService: {loadBalancerClass: internal}", "readService.loadBalancerClass: it is of a Service of type LoadBalancer"},
		{"readService: {loadBalancerSourceRanges: [10.0.0.0/8]}", "readService.loadBalancerSourceRanges: they are of a Service of type LoadBalancer"},
		{"service: {type: LoadBalancer, loadBalancerSourceRanges: [10.0.0.300/8]}", "loadBalancerSourceRanges"},
		{"networkPolicy: {clients: [{}]}", "networkPolicy/clients/0"},
		{"networkPolicy: {clients: [{podSelector: {}, ipBlock: {cidr: 10.0.0.0/8}}]}", "networkPolicy/clients/0"},
		{"networkPolicy: {clients: [{ipBlock: {cidr: 10.0.0.0/8, except: [11.0.0.0/16]}}]}", "networkPolicy.clients: except: 11.0.0.0/16 is no part of 10.0.0.0/8"},
		{"networkPolicy: {monitoring: [{ipBlock: {cidr: 10.0.0.0/8, except: [10.0.0.0/8]}}]}", "networkPolicy.monitoring: except: 10.0.0.0/8 is no part"},
		{"networkPolicy: {clients: [{ipBlock: {cidr: 'fd00::/8', except: [10.0.0.0/8]}}]}", "networkPolicy.clients: except: 10.0.0.0/8 is no part of fd00::/8"},
		{"networkPolicy: {clients: [{ipBlock: {cidr: 'fd00::/16', except: ['fd01::/24']}}]}", "networkPolicy.clients: except: fd01::/24 is no part"},
		{"networkPolicy: {clients: [{ipBlock: {cidr: 10.0.0.1/8}}]}", "networkPolicy.clients: 10.0.0.1/8 is an address in a range"},
		{"networkPolicy: {clients: [{ipBlock: {cidr: 10.0.0.0/33}}]}", "networkPolicy.clients: 10.0.0.0/33: addresses have no more than 32 bits"},
		{"networkPolicy: {clients: [{ipBlock: {cidr: '1:2:3/16'}}]}", "networkPolicy.clients: 1:2:3/16 is no range"},
		{"networkPolicy: {clients: [{ipBlock: {cidr: 10.0.0.300/32}}]}", "networkPolicy.clients: 10.0.0.300/32 is no range"},
		{"networkPolicy: {egress: {dns: [{ipBlock: {cidr: '::1/64'}}]}}", "networkPolicy.egress.dns: ::1/64 is an address in a range"},
		{"networkPolicy: {egress: {extra: [{ports: [{port: 20, endPort: 10}]}]}}", "networkPolicy.egress.extra: endPort 10 is before port 20"},
		{"networkPolicy: {egress: {extra: [{ports: [{port: http, endPort: 10}]}]}}", "networkPolicy.egress.extra: endPort 10 goes with a port that is a number"},
		{"networkPolicy: {egress: {extra: [{ports: [{port: http-name-too-longggg}]}]}}", "networkPolicy/egress/extra/0/ports/0/port"},
		{"networkPolicy: {egress: {extra: [{ports: [{port: '443'}]}]}}", "networkPolicy/egress/extra/0/ports/0/port"},
		{"networkPolicy: {egress: {extra: [{to: [{ipBlock: {cidr: 10.0.0.0/8, except: [9.0.0.0/9]}}]}]}}", "networkPolicy.egress.extra: except: 9.0.0.0/9 is no part"},
		{"service: {type: LoadBalancer, loadBalancerSourceRanges: [10.0.0.1/8]}", "service.loadBalancerSourceRanges: 10.0.0.1/8 is an address"},
		{"discovery: {type: etcd, etcd: {endpoints: ['http://etcd:99999']}}", "discovery.etcd.endpoints: 99999 is no port"},
		{"discovery: {type: etcd, etcd: {endpoints: ['etcd 2379']}}", "discovery/etcd/endpoints/0"},
		{"tracing: {endpoint: 'a:99999'}", "tracing.endpoint: 99999 is no port"},
		// Times.
		{"backup: {enabled: true, timeZone: Mars/Olympus}", `backup.timeZone: there is no time zone "Mars/Olympus"`},
		{"backup: {enabled: true, timeZone: Local}", "backup.timeZone: there is no time zone"},
		{"backup: {enabled: true, schedule: '60 2 * * *'}", "backup.schedule: 60 is no minute, which is 0 to 59"},
		{"backup: {enabled: true, schedule: '0 2 * * 7'}", "backup.schedule: there is no day 7 of the week here: Sunday is 0"},
		{"backup: {enabled: true, schedule: '0 2 * * 1-7'}", "backup.schedule: there is no day 7"},
		{"backup: {enabled: true, schedule: 'CRON_TZ=UTC 0 2 * * *'}", "write it as backup.timeZone"},
		{"backup: {enabled: true, schedule: 'TZ=UTC 0 2 * * *'}", "write it as backup.timeZone"},
		{"backup: {enabled: true, schedule: '0 2 * *'}", "has 4 parts, and 5 are needed"},
		{"backup: {enabled: true, schedule: ' '}", "has 0 parts, and 5 are needed"},
		{"backup: {enabled: true, schedule: '*/0 2 * * *'}", `"*/0" is no minute`},
		{"backup: {enabled: true, schedule: '0 2 L * *'}", `"L" is no day of the month`},
		{"backup: {enabled: true, schedule: '0 2 * jan-feb-mar *'}", "is no month"},
		{"backup: {enabled: true, schedule: '0 2 0 * *'}", "backup.schedule: 0 is no day of the month, which is 1 to 31"},
		{"backup: {enabled: true, schedule: '@every 6'}", "@every is followed by a length of time"},
		{"backup: {enabled: true, schedule: '@every 5s'}", "@every 5s is less than a minute"},
		{"backup: {enabled: true, schedule: '0 2 * * fri-mon'}", "backup.schedule: fri-mon of the day of the week ends before it begins"},
		{"backup: {enabled: true, schedule: '0 5-2 * * *'}", "backup.schedule: 5-2 of the hour"},
		{"backup: {enabled: true, schedule: '@midday'}", "backup.schedule: there is no @midday"},
		{"upgrade: {check: {timeoutSeconds: 30}}", "upgrade.check.timeoutSeconds: the job would be ended after 30 s"},
		{"monitoring: {serviceMonitor: {enabled: true, interval: 5s}}", "monitoring.serviceMonitor.scrapeTimeout: 10s is longer than"},
		{"monitoring: {serviceMonitor: {enabled: true, relabelings: [{action: rename}]}}", "relabelings/0/action"},
		{"probes: {liveness: {successThreshold: 2}}", "probes/liveness/successThreshold"},
		// Resources and sizes.
		{"resources: {requests: {cpu: 2}, limits: {cpu: 500m}}", "resources.requests.cpu: 2 is more than resources.limits.cpu, 500m"},
		{"resources: {requests: {memory: 4Gi}}", "resources.requests.memory: 4Gi is more than resources.limits.memory, 2Gi"},
		{"resources: {requests: {ephemeral-storage: 2Gi}, limits: {ephemeral-storage: 1Gi}}", "resources.requests.ephemeral-storage: 2Gi"},
		{"resources: {requests: {memory: 1024m}, limits: {memory: 2048m}}", "resources.limits.memory: with 2048m no container starts"},
		{"resources: {limits: {memory: lots}}", "resources/limits/memory"},
		{"resources: {limits: {disk: 1Gi}}", "resources/limits"},
		{"resources: {limits: {memory: -1}}", "resources/limits/memory"},
		{"readReplicas: {count: 1, resources: {requests: {memory: 2Gi}, limits: {memory: 1Gi}}}", "readReplicas.resources.requests.memory"},
		{"backup: {enabled: true, resources: {requests: {memory: 1Gi}}}", "backup.resources.requests.memory"},
		{"upgrade: {check: {resources: {requests: {memory: 1Gi}}}}", "upgrade.check.resources.requests.memory"},
		{"restore: {from: a, existingClaim: b, claimResources: {requests: {memory: 1Gi}}}", "restore.claimResources.requests.memory"},
		{"restore: {from: a, existingClaim: b, resources: {requests: {memory: 2Gi}, limits: {memory: 1Gi}}}", "restore.resources.requests.memory"},
		{"persistence: {size: 0}", "persistence/size"},
		{"persistence: {size: '0'}", "persistence.size: 0 is too small"},
		{"persistence: {size: 1Mi}", "persistence.size: 1Mi is too small for a member to start: its redo log takes 100M (settings.innodb_redo_log_capacity)"},
		{"{persistence: {size: 1Gi}, settings: {innodb_redo_log_capacity: 2G}}", "Take at least 2176Mi"},
		{"persistence: {size: 20GB}", "persistence/size"},
		{"persistence: {size: 100E}", "persistence.size: 100E is more than"},
		{"persistence: {accessModes: []}", "persistence/accessModes"},
		{"backup: {enabled: true, persistence: {size: 1}}", "backup.persistence.size: 1 has no room"},
		{"backup: {enabled: true, persistence: {accessModes: [ReadWriteOncePod, ReadWriteMany]}}", "backup.persistence.accessModes: ReadWriteOncePod goes with no other mode"},
		// Accounts.
		{"users: [{name: root, existingSecret: s}]", "users: root: root@% is the group's own account"},
		{"users: [{name: admin, user: root, host: '%', existingSecret: s}]", "users: admin: root@% is"},
		{"backup: {enabled: true, account: {user: root}}", "backup.account.user: root@% is"},
		{"users: [{name: trireme-backup, existingSecret: s}]", "users: the name trireme-backup is that of the account of backups"},
		{"users: [{name: " + long(33) + ", existingSecret: s}]", "is longer than 32 characters"},
		{"users: [{name: a, user: " + long(33) + ", existingSecret: s}]", "users/0/user"},
		{"users: [{name: a, existingSecret: s, grants: ['SELECT ON `" + long(65) + "`.*']}]", "is longer than the 64 characters"},
		{"users: [{name: a, existingSecret: ''}]", "users/0/existingSecret"},
		{"root: {password: ' a'}", "root/password"},
		{`root: {password: "a\nb"}`, "root/password"},
		{"root: {existingSecret: 'A b'}", "root/existingSecret"},
		{"root: {key: 'a b'}", "root/key"},
		// Names and settings.
		{"clusterName: 'a b'", "clusterName"},
		{"clusterName: a/b", "clusterName"},
		{"fullnameOverride: " + long(41), "has 41 characters, and names of objects have room for 40"},
		{"fullnameOverride: Upper", "the name Upper is none that objects of Kubernetes can have"},
		{"nameOverride: a_b", "the name prod-db-a_b is none"},
		{"clusterDomain: cluster.local.", "clusterDomain"},
		{"image: {repository: 'a b'}", "image/repository"},
		{"image: {repository: 'reg/trireme:1'}", "image/repository"},
		{"image: {tag: 'a b'}", "image/tag"},
		{"imagePullSecrets: [{name: a}, {name: a}]", "imagePullSecrets: a comes twice"},
		{"imagePullSecrets: [{}]", "imagePullSecrets/0"},
		{"settings: {datadir: /elsewhere}", "settings.datadir: the chart sets it itself"},
		{"settings: {stop_wait: 5s}", "use stopWaitSeconds"},
		{`settings: {sql_mode: "ANSI\nport = 1"}`, "settings/sql_mode"},
		{"settings: {init_connect: 'SET a = 1 # b'}", "settings.init_connect: what follows ' #'"},
		{"clientTLS: {dnsNames: ['a b']}", "clientTLS/dnsNames/0"},
		{"serviceAccount: {name: 'a b'}", "serviceAccount/name"},
	} {
		if _, err := render(c.values); err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "'not' failed") {
			t.Errorf("%s: %v", c.values, err)
		}
	}
}

// TestNotRefused: what looks like that and can work is not refused.
func TestNotRefused(t *testing.T) {
	for _, values := range []string{
		"{service: {type: NodePort, nodePort: 20306}, nodePortRange: 20000-30000}",
		"{service: {type: NodePort, nodePort: 30306}, readService: {enabled: false, type: NodePort, nodePort: 30306}}",
		"{service: {port: 17000, grpc: false}}",
		"{service: {type: LoadBalancer, nodePort: 30306, loadBalancerClass: example.com/internal, loadBalancerSourceRanges: [10.0.0.0/8, 'fd00::/8', '::/0']}}",
		"backup: {enabled: true, schedule: '*/15 0-23/2 1,15 jan-dec MON-FRI', timeZone: Europe/Berlin}",
		"backup: {enabled: true, schedule: '@daily', timeZone: UTC, persistence: {accessModes: [ReadWriteOnce, ReadWriteMany]}}",
		"{persistence: {size: 228Mi}}",
		"{persistence: {size: 140Mi}, settings: {innodb_redo_log_capacity: 4M}, resources: {requests: {memory: 1e9, cpu: 0.5}, limits: {memory: 1000000000, cpu: 1}}}",
		"persistence: {size: 21474836480}",
		"discovery: {type: etcd, etcd: {endpoints: ['etcd:2379', 'https://[fd00::1]:2379/']}}",
		"{extraVolumes: [{name: a, emptyDir: {}}], extraVolumeMounts: [{name: a, mountPath: /var/lib/trireme/import}], resources: {limits: {cpu: .9}}}",
		"users: [{name: root, host: localhost, existingSecret: s, grants: ['SELECT (a, b) ON `shop`.`t`', 'EXECUTE ON FUNCTION shop.f', 'ALL ON *.*']}]",
		"tolerations: [{operator: Exists}, {key: a, operator: Equal, value: b, effect: NoExecute, tolerationSeconds: 5}]",
		"affinity: {podAntiAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, podAffinityTerm: {topologyKey: a, labelSelector: {matchExpressions: [{key: a, operator: Exists}]}}}]}}",
		"{extraVolumes: [{name: a, secret: {secretName: s, items: [{key: k, path: p}], defaultMode: 288}}, {name: b, projected: {sources: [{serviceAccountToken: {path: t, expirationSeconds: 3600}}]}}], extraVolumeMounts: [{name: a, mountPath: /a, readOnly: true}, {name: b, mountPath: /b, subPath: t}]}",
		"{sidecars: [{name: a, image: a, ports: [{name: own, containerPort: 9000}], volumeMounts: [{name: data, mountPath: /data, readOnly: true}], readinessProbe: {httpGet: {path: /, port: own}}}]}",
		"networkPolicy: {clients: [{ipBlock: {cidr: 10.0.0.0/8, except: [10.1.0.0/16]}}, {namespaceSelector: {matchLabels: {a: b}}, podSelector: {}}], egress: {enabled: true, extra: [{ports: [{port: 443, protocol: TCP}]}]}}",
		"{podSecurityContext: {fsGroup: null, runAsUser: null, runAsGroup: null}, readReplicas: {podSecurityContext: {runAsUser: null}}}",
		"resources: {requests: {hugepages-2Mi: 4Mi, example.com/disk: 1}, limits: {hugepages-2Mi: 4Mi, example.com/disk: 1}}",
		"{fullnameOverride: a234567890123456789012345678901234567890, readReplicas: {count: 99}, backup: {enabled: true}}",
		"probes: {readiness: {successThreshold: 3, initialDelaySeconds: 5}}",
		"networkPolicy: {clients: [{ipBlock: {cidr: 0.0.0.0/0, except: [10.0.0.0/8, 192.168.1.7/32]}}, {ipBlock: {cidr: '::/0', except: ['fd00::/8', '2001:DB8::7/128', '1:2:3:4:5:6:7:8/128']}}, {ipBlock: {cidr: 'fe80::/10'}}]}",
		"networkPolicy: {egress: {enabled: true, extra: [{to: null, ports: [{port: 1000, endPort: 2000}, {port: 80-a}, {protocol: UDP}]}]}}",
		"backup: {enabled: true, schedule: ' 0  2 ? * Sun,3-5/2 '}",
		"backup: {enabled: true, schedule: '@every 6h'}",
		"sidecars: [{name: backup, image: a, ports: [{name: metrics, containerPort: 81}]}, {name: check, image: a, ports: [{name: metrics, containerPort: 82}]}, {name: prepare, image: a}]",
		"bufferPool: 536870912",
		"persistence: {size: 1e10}",
		"persistence: {size: '1e10'}",
		"{extraVolumes: [{name: a, emptyDir: {medium: Memory}}], extraVolumeMounts: [{name: a, mountPath: /dev/shm}, {name: a, mountPath: /etc/ssl/certs, subPath: a..b/c}, {name: a, mountPath: /usr/share/zoneinfo}, {name: a, mountPath: /run}]}",
		"{extraVolumes: [{name: b, persistentVolumeClaim: {claimName: c}}], sidecars: [{name: a, image: 'reg:5000/a@sha256:b', volumeDevices: [{name: b, devicePath: /dev/x}], lifecycle: {preStop: {sleep: {seconds: 5}}}}]}",
		"extraVolumes: [{name: a, ephemeral: {volumeClaimTemplate: {spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}}}, {name: b, downwardAPI: {items: [{path: l, fieldRef: {fieldPath: metadata.labels}}]}}]",
		"extraEnv: [{name: A, valueFrom: {fieldRef: {apiVersion: v1, fieldPath: 'metadata.labels[''a'']'}}}, {name: B, valueFrom: {resourceFieldRef: {resource: limits.memory, divisor: 1Mi}}}]",
		"affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: example.com/a, operator: Gt, values: ['5']}], matchFields: [{key: metadata.name, operator: In, values: [node]}]}]}}}",
		"topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule, labelSelector: {}, matchLabelKeys: [a]}]",
		"{enabled: false, global: {imageRegistry: a}}",
		"sidecars: [{name: a, image: a, lifecycle: null, imagePullPolicy: '', terminationMessagePolicy: '', livenessProbe: null, ports: null, env: null, securityContext: null, resources: {limits: null}}]",
		"{initContainers: [{name: a, image: a, readinessProbe: null, lifecycle: null}], extraVolumes: [{name: a, emptyDir: null}, {name: b, configMap: {name: c, items: null}}]}",
		"affinity: {nodeAffinity: null, podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: a, labelSelector: null}]}}",
	} {
		if _, err := render(values); err != nil {
			t.Errorf("%s: %.800v", values, err)
		}
	}
}

// TestWrittenOtherwise: what is taken in another spelling is in manifests as it is to be read.
func TestWrittenOtherwise(t *testing.T) {
	r := must(t, "{bufferPool: 8589934592, backup: {enabled: true, schedule: ' 0  2 * * *\t'}, sidecars: [{name: backup, image: a, securityContext: null}]}")
	if !strings.Contains(r.settings(t), "innodb_buffer_pool_size = 8589934592\n") {
		t.Error(r.settings(t))
	}
	if is := object[*batchv1.CronJob](t, r, "CronJob/"+set+"-backup").Spec.Schedule; is != "0 2 * * *" {
		t.Errorf("%q", is)
	}
	sidecar := object[*appsv1.StatefulSet](t, r, "StatefulSet/"+set).Spec.Template.Spec.Containers[1]
	if is := sidecar.SecurityContext; is == nil || is.AllowPrivilegeEscalation == nil || *is.AllowPrivilegeEscalation {
		t.Errorf("a sidecar has %v", is)
	}
}

// TestLongNames: a name that has to be cut is refused, since that of another release may be cut to the same; by fullnameOverride a release keeps what it had.
func TestLongNames(t *testing.T) {
	const name = "a-release-with-a-name-of-fifty-characters-and-more"
	_, err := renderAs(name, "{}")
	const cut = "a-release-with-a-name-of-fifty-character"
	if err == nil || !strings.Contains(err.Error(), "has 58 characters") || !strings.Contains(err.Error(), "fullnameOverride="+cut) {
		t.Fatal(err)
	}
	r, err := renderAs(name, "fullnameOverride: "+cut)
	if err != nil {
		t.Fatal(err)
	}
	if r.objects["StatefulSet/"+cut] == nil {
		t.Error("it has another name")
	}
}

// TestDigitsOfOldClusters: before Kubernetes 1.36 names of Services begin with a letter.
func TestDigitsOfOldClusters(t *testing.T) {
	c, err := loader.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	for version, refused := range map[string]bool{"v1.30.0": true, "v1.35.9-gke.1": true, "v1.36.0": false} {
		_, err := rendered(c, nil, capabilities(version), common.ReleaseOptions{Name: "1db", Namespace: "prod", IsInstall: true}, nil)
		if (err != nil) != refused || refused && !strings.Contains(err.Error(), "the name 1db-trireme begins with a digit") {
			t.Errorf("%s: %v", version, err)
		}
	}
}
