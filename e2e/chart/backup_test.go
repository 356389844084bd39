package chart

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"

	"github.com/triremedb/trireme/e2e/servers/ports"
)

const (
	accounts = "users: [{name: shop, existingSecret: shop-db, grants: ['ALL ON shop.*', \"SELECT (`a`), UPDATE ON stock.t\"]}, " +
		"{name: old, user: old app, host: 10.%, existingSecret: old-db, key: pw, tls: true, plugin: mysql_native_password}]"
	backupsElsewhere = "{replicaCount: 5, readReplicas: {count: 9}, nodeSelector: {disk: ssd}, tolerations: [{key: db, operator: Exists}], imagePullSecrets: [{name: pull}], " +
		"backup: {enabled: true, schedule: '@hourly', timeZone: Europe/Berlin, keep: 0, keepDays: 30, rateMiB: 50, tolerations: [], podLabels: {team: db}, podAnnotations: {x: z}, " +
		"persistence: {existingClaim: nfs}, account: {create: false, user: mine, existingSecret: mine, key: pw}, ca: {existingSecret: ca}}}"
)

func cronJob(t *testing.T, r *release) (*batchv1.CronJob, *corev1.Container) {
	t.Helper()
	c := object[*batchv1.CronJob](t, r, "CronJob/prod-db-trireme-backup")
	return c, &c.Spec.JobTemplate.Spec.Template.Spec.Containers[0]
}

// Without the values there is nothing of backups and of accounts, and no pod is another.
func TestBackupsAreOff(t *testing.T) {
	r := must(t, "{}")
	for key := range r.objects {
		if strings.Contains(key, "backup") || strings.Contains(key, "users") || strings.HasPrefix(key, "PersistentVolumeClaim/") {
			t.Errorf("%s is made", key)
		}
	}
	for _, p := range r.pods() {
		for _, v := range p.Spec.Volumes {
			if v.Projected != nil {
				t.Errorf("pod %s has a volume %s", p.Name, v.Name)
			}
		}
	}
}

// The account's name may be any that the database takes: a job logs in as the one that the group keeps.
func TestBackupUser(t *testing.T) {
	for _, user := range []string{"a: b", "nightly #2", `"q" 'q'`, "{x", "- a"} {
		r := must(t, fmt.Sprintf("{peerTLS: {source: none}, backup: {enabled: true, account: {user: %q}}}", user))
		_, c := cronJob(t, r)
		var kept struct{ User string }
		if err := json.Unmarshal([]byte(object[*corev1.ConfigMap](t, r, "ConfigMap/prod-db-trireme-users").Data["trireme-backup"]), &kept); err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(c.Args, "--user="+user) || kept.User != user {
			t.Errorf("%q: %q is kept, of %q", user, kept.User, c.Args)
		}
	}
}

// Jobs run one at a time, where no Service leads, with the one right that they need.
func TestBackupJob(t *testing.T) {
	r := must(t, installations["backups"])
	job, c := cronJob(t, r)
	if job.Spec.ConcurrencyPolicy != batchv1.ForbidConcurrent || *job.Spec.JobTemplate.Spec.ActiveDeadlineSeconds == 0 {
		t.Errorf("%+v", job.Spec)
	}
	pod := &job.Spec.JobTemplate.Spec.Template
	if pod.Spec.AutomountServiceAccountToken == nil || *pod.Spec.AutomountServiceAccountToken {
		t.Error("it has a token")
	}
	for key, o := range r.objects {
		var selector labels.Selector
		switch o := o.(type) {
		case *corev1.Service:
			selector = labels.SelectorFromSet(o.Spec.Selector)
		case *appsv1.StatefulSet:
			selector, _ = metav1.LabelSelectorAsSelector(o.Spec.Selector)
		default:
			continue
		}
		if selector.Matches(labels.Set(pod.Labels)) {
			t.Errorf("%s takes the job's pod for one of its own", key)
		}
	}
	claim := object[*corev1.PersistentVolumeClaim](t, r, "PersistentVolumeClaim/prod-db-trireme-backup")
	if claim.Annotations["helm.sh/resource-policy"] != "keep" {
		t.Error("backups go with the release")
	}
	config := object[*corev1.ConfigMap](t, r, "ConfigMap/prod-db-trireme-users")
	if len(config.Data) != 1 || config.Data["trireme-backup"] != `{"grants":["BACKUP_ADMIN ON *.*"],"host":"%","plugin":"caching_sha2_password","tls":false,"user":"backup"}` {
		t.Errorf("%v", config.Data)
	}
	want := "--grpc=prod-db-trireme-2.prod-db-trireme-peers.prod.svc.cluster.local:17000,prod-db-trireme-1.prod-db-trireme-peers.prod.svc.cluster.local:17000," +
		"prod-db-trireme-0.prod-db-trireme-peers.prod.svc.cluster.local:17000,prod-db-trireme.prod.svc.cluster.local:17000"
	if !slices.Contains(c.Args, want) || !slices.Contains(c.Args, "--keep=7") || !slices.Contains(c.Args, "--tls=required") {
		t.Errorf("%v", c.Args)
	}

	job, c = cronJob(t, must(t, installations["backups elsewhere"]))
	spec := &job.Spec.JobTemplate.Spec.Template.Spec
	for _, want := range []string{"--keep=0", "--keep-days=30", "--rate=50", "--user=mine", "--tls=verify"} {
		if !slices.Contains(c.Args, want) {
			t.Errorf("no %s: %v", want, c.Args)
		}
	}
	if last := c.Args[len(c.Args)-1]; strings.Count(last, "-read-") != 3 || strings.Count(last, ",") != 8 {
		t.Error(last)
	}
	if spec.NodeSelector["disk"] != "ssd" || len(spec.Tolerations) != 0 || *job.Spec.TimeZone != "Europe/Berlin" || spec.Volumes[0].PersistentVolumeClaim.ClaimName != "nfs" {
		t.Errorf("%+v", spec)
	}
}

// Where only some clients may connect, the job may.
func TestBackupJobMayConnect(t *testing.T) {
	r := must(t, "{backup: {enabled: true}, networkPolicy: {clients: [{podSelector: {matchLabels: {app: shop}}}]}}")
	job, _ := cronJob(t, r)
	found := false
	for _, rule := range object[*networkingv1.NetworkPolicy](t, r, "NetworkPolicy/prod-db-trireme").Spec.Ingress {
		for _, from := range rule.From {
			s, err := metav1.LabelSelectorAsSelector(from.PodSelector)
			if err != nil || !s.Matches(labels.Set(job.Spec.JobTemplate.Spec.Template.Labels)) {
				continue
			}
			if found = true; len(rule.Ports) != 1 || rule.Ports[0].Port.StrVal != "grpc" {
				t.Errorf("it may use %v", rule.Ports)
			}
		}
	}
	if !found {
		t.Error("it may not connect")
	}
}

// What an account is changes without its pods being made anew.
func TestAccountsInPods(t *testing.T) {
	template := func(values string) string {
		b, err := yaml.Marshal(object[*appsv1.StatefulSet](t, must(t, values), "StatefulSet/prod-db-trireme").Spec.Template)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	if template(accounts) != template(strings.Replace(accounts, "ALL ON shop.*", "SELECT ON shop.*", 1)) {
		t.Error("pods start anew when an account gets other privileges")
	}
	r := must(t, "{readReplicas: {count: 1}, "+accounts+"}")
	for _, p := range r.pods() {
		for _, v := range p.Spec.Volumes {
			if v.Projected == nil {
				continue
			}
			if p.Name != "prod-db-trireme" {
				t.Errorf("pod %s, which never leads, has passwords", p.Name)
			}
			for _, from := range v.Projected.Sources {
				if from.Secret != nil && (from.Secret.Optional == nil || !*from.Secret.Optional) {
					t.Errorf("without the Secret %s no pod starts", from.Secret.Name)
				}
			}
		}
	}
}

// project writes what a volume of Secrets and ConfigMaps holds.
func (r *release) project(t *testing.T, v *corev1.ProjectedVolumeSource, dir string, secrets map[string]string) {
	t.Helper()
	write := func(name, text string) {
		name = filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	for _, from := range v.Sources {
		if c := from.ConfigMap; c != nil {
			for _, i := range c.Items {
				write(i.Path, object[*corev1.ConfigMap](t, r, "ConfigMap/"+c.Name).Data[i.Key])
			}
		}
		if s := from.Secret; s != nil {
			for _, i := range s.Items {
				text, given := secrets[s.Name+"/"+i.Key]
				if !given {
					text = string(object[*corev1.Secret](t, r, "Secret/"+s.Name).Data[i.Key])
				}
				write(i.Path, text)
			}
		}
	}
}

// The accounts, the job of backups and that of a restore, with the program: a node makes the
// accounts, gives the job two backups, of which it keeps one, and that can be restored.
func TestBackupsWork(t *testing.T) {
	r := must(t, "{backup: {enabled: true, keep: 1}, "+accounts+"}")
	program, err := filepath.Abs("../../bin/trireme")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(program); err != nil {
		t.Fatalf("make test-chart builds it: %v", err)
	}
	dir := t.TempDir()
	var users *corev1.ProjectedVolumeSource
	for _, v := range object[*appsv1.StatefulSet](t, r, "StatefulSet/prod-db-trireme").Spec.Template.Spec.Volumes {
		if v.Projected != nil {
			users = v.Projected
		}
	}
	// A pod of an older revision that starts while the newest has an account less is not to wait for it for ever.
	if c := users.Sources[0].ConfigMap; c == nil || c.Optional == nil || !*c.Optional {
		t.Errorf("a pod does not start without an account that the ConfigMap has not any more: %+v", users.Sources[0])
	}
	r.project(t, users, filepath.Join(dir, "users"), map[string]string{"shop-db/password": "shop's", "old-db/pw": "old's"})
	secret := object[*corev1.Secret](t, r, "Secret/prod-db-trireme-backup").Data["password"]
	if err := os.WriteFile(filepath.Join(dir, "password"), secret, 0o600); err != nil {
		t.Fatal(err)
	}
	mysql, grpc, stop := runServer(t, program, dir)
	run := func(args ...string) (string, error) {
		b, err := exec.Command(program, args...).CombinedOutput()
		return string(b), err
	}
	_, c := cronJob(t, r)
	local := strings.NewReplacer("/backups/", dir+"/backups/", "/etc/trireme-backup/", dir+"/")
	var args []string
	for _, a := range c.Args {
		if !strings.HasPrefix(a, "--grpc=") {
			args = append(args, local.Replace(a))
		}
	}
	args = append(args, "--grpc=127.0.0.1:1,127.0.0.1:"+grpc)
	var out string
	for _, want := range []string{"can be restored to", "removed"} {
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
			if out, err = run(args...); err == nil || time.Now().After(deadline) {
				break
			}
		}
		if err != nil || !strings.Contains(out, want) {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	for account, password := range map[string]string{"backup": string(secret), "shop": "shop's"} {
		out, err := run("sql", "--host=127.0.0.1", "--port="+mysql, "--user="+account, "--password="+password, "-e", "SHOW GRANTS")
		if want := map[string]string{"backup": "GRANT BACKUP_ADMIN ON *.*", "shop": "GRANT ALL PRIVILEGES ON `shop`.*"}[account]; err != nil || !strings.Contains(out, want) {
			t.Errorf("%s: %v\n%s", account, err, out)
		}
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	shelf := filepath.Join(dir, "backups", "prod-db-trireme")
	out, err = run("restore", "--list", "--from="+shelf)
	name := regexp.MustCompile(`(?m)^\S+Z`).FindString(out)
	if err != nil || name == "" || strings.Count(out, "\n") != 2 {
		t.Fatalf("%v\n%s", err, out)
	}
	claim, job := restoreOf(t, must(t, "{restore: {from: prod-db-trireme/latest, existingClaim: prod-db-trireme-backup}, settings: {innodb_undo_tablespaces: 3}, bufferPool: 32M}"))
	if claim.Name != job.Spec.Template.Spec.Volumes[0].PersistentVolumeClaim.ClaimName {
		t.Errorf("it restores into %v", job.Spec.Template.Spec.Volumes)
	}
	file := filepath.Join(dir, "trireme.cnf")
	if err := os.WriteFile(file, []byte(settingsOf(t, &job.Spec.Template)), 0o600); err != nil {
		t.Fatal(err)
	}
	local = strings.NewReplacer("/backups/", dir+"/backups/", "/etc/trireme/trireme.cnf", file, "/dev/termination-log", filepath.Join(dir, "result"))
	args = []string{"--datadir=" + filepath.Join(dir, "restored")} // which the image's environment tells
	for _, e := range job.Spec.Template.Spec.Containers[0].Env {
		t.Setenv(e.Name, e.Value)
	}
	for _, a := range job.Spec.Template.Spec.Containers[0].Args {
		args = append(args, local.Replace(a))
	}
	args = append(args[1:], args[0])
	if out, err = run(args...); err != nil || !strings.Contains(out, "restored to transaction") || !strings.Contains(out, name) {
		t.Errorf("%v\n%s", err, out)
	}
	if said, err := os.ReadFile(filepath.Join(dir, "result")); err != nil || !strings.HasPrefix(string(said), "restored to transaction") {
		t.Errorf("%q, %v", said, err)
	}
	if out, err = run(args...); err != nil || !strings.Contains(out, "there are data already") {
		t.Errorf("a restore over data: %v\n%s", err, out)
	}
	if out, err = run(slices.DeleteFunc(args, func(a string) bool { return a == "--if-empty" })...); err == nil || !strings.Contains(out, "not empty") {
		t.Errorf("a restore over data: %v\n%s", err, out)
	}
}

// runServer runs a node until stop is called.
func runServer(t *testing.T, program, dir string) (mysql, grpc string, stop func() error) {
	t.Helper()
	var port [3]int
	for i := range port {
		var err error
		if port[i], err = ports.Free(); err != nil {
			t.Fatal(err)
		}
	}
	mysql, grpc = fmt.Sprint(port[0]), fmt.Sprint(port[1])
	cmd := exec.Command(program, "server", "--datadir="+filepath.Join(dir, "data"), "--bind-address=127.0.0.1", "--report-host=127.0.0.1", "--port="+mysql, "--grpc-port="+grpc,
		fmt.Sprintf("--peer-port=%d", port[2]), "--read-only-port=-1", "--http-port=-1", "--innodb-buffer-pool-size=16M", "--initial-root-password=x", "--users-dir="+filepath.Join(dir, "users"), "--log-format=json")
	log, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said := make(chan string, 1)
	go func() {
		b, _ := io.ReadAll(log)
		said <- string(b)
	}()
	ended := false
	stop = func() error {
		if ended {
			return nil
		}
		ended = true
		err := cmd.Process.Signal(os.Interrupt)
		text := <-said
		err = errors.Join(err, cmd.Wait())
		for line := range strings.Lines(text) {
			var l struct{ Level, Msg, Error string }
			if json.Unmarshal([]byte(line), &l) == nil && l.Level == "ERROR" && !strings.Contains(l.Error, "`stock`") { // whose table is not there
				t.Errorf("the node says %s", line)
			}
		}
		return err
	}
	t.Cleanup(func() { _ = stop() })
	return mysql, grpc, stop
}

// The password of the backups' account is drawn for each release.
func TestBackupPassword(t *testing.T) {
	drawn := map[string]bool{}
	for range 2 {
		s := object[*corev1.Secret](t, must(t, installations["backups"]), "Secret/prod-db-trireme-backup")
		drawn[base64.StdEncoding.EncodeToString(s.Data["password"])] = len(s.Data["password"]) >= 20
	}
	for p, long := range drawn {
		if !long || len(drawn) != 2 {
			t.Errorf("%q", p)
		}
	}
}
