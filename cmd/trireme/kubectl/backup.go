package kubectl

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// cronJob is the release's job for backups. What is not looked at stays as it is.
type cronJob struct {
	Meta meta `json:"metadata"`
	Spec struct {
		JobTemplate struct {
			Spec json.RawMessage `json:"spec"`
		} `json:"jobTemplate"`
	} `json:"spec"`
}

type job struct {
	Meta   meta `json:"metadata"`
	Status struct {
		Conditions []struct {
			Type    string `json:"type"`
			Status  string `json:"status"`
			Reason  string `json:"reason"`
			Message string `json:"message"`
		} `json:"conditions"`
	} `json:"status"`
}

// ended tells whether a job has ended, and how it failed.
func (j *job) ended() (bool, error) {
	for _, c := range j.Status.Conditions {
		switch {
		case c.Status != "True":
		case c.Type == "Complete":
			return true, nil
		case c.Type == "Failed":
			return true, fmt.Errorf("job %s has failed: %s: %s", j.Meta.Name, c.Reason, c.Message)
		}
	}
	return false, nil
}

// cron finds the release's CronJob.
func (p *Plugin) cron() (*cronJob, error) {
	if p.release == "" {
		if _, err := p.pods(); err != nil {
			return nil, err
		}
	}
	all, err := get[cronJob](p, "cronjobs", "-l", instanceLabel+"="+p.release)
	if err != nil {
		return nil, err
	}
	for i := range all {
		if strings.HasSuffix(all[i].Meta.Name, "-backup") && (p.name == "" || all[i].Meta.Labels[nameLabel] == p.name+"-backup") {
			return &all[i], nil
		}
	}
	return nil, fmt.Errorf("release %s has no job for backups: it needs backup.enabled=true", p.release)
}

// backup makes a backup as the CronJob does.
func (p *Plugin) backup(args []string) error {
	if err := p.none(args); err != nil {
		return err
	}
	c, err := p.cron()
	if err != nil {
		return err
	}
	name := c.Meta.Name + time.Now().UTC().Format("-20060102-150405")
	if _, err := p.output("create", "job", name, "--from=cronjob/"+c.Meta.Name); err != nil {
		return err
	}
	_, _ = fmt.Fprintf(p.Stderr, "job %s: it goes on if this command ends\n", name)
	err = p.await(name)
	return errors.Join(err, p.through("logs", "job/"+name, "--tail=-1"))
}

// await waits until a job has ended.
func (p *Plugin) await(name string) error {
	for {
		out, err := p.output("get", "job", name, "-o", "json")
		if err != nil {
			return err
		}
		var j job
		if err := json.Unmarshal(out, &j); err != nil {
			return err
		}
		if ended, err := j.ended(); ended {
			return err
		}
		select {
		case <-p.ctx.Done():
			return p.ctx.Err()
		case <-time.After(time.Second):
		}
	}
}

// backups has a job of the CronJob's kind tell what backups there are: the volume is the job's.
func (p *Plugin) backups(args []string) (err error) {
	if err := p.none(args); err != nil {
		return err
	}
	c, err := p.cron()
	if err != nil {
		return err
	}
	spec, err := listing(c.Spec.JobTemplate.Spec)
	if err != nil {
		return fmt.Errorf("cronjob %s: %w", c.Meta.Name, err)
	}
	name := c.Meta.Name + time.Now().UTC().Format("-list-150405")
	text, err := json.Marshal(map[string]any{"apiVersion": "batch/v1", "kind": "Job", "spec": spec,
		"metadata": map[string]any{"name": name, "namespace": c.Meta.Namespace, "labels": c.Meta.Labels}})
	if err != nil {
		return err
	}
	cmd := p.command("create", "-f", "-")
	cmd.Stdin, cmd.Stderr = bytes.NewReader(text), p.Stderr
	if err := cmd.Run(); err != nil {
		return ErrFailed
	}
	err = p.await(name)
	err = errors.Join(err, p.through("logs", "job/"+name, "--tail=-1"))
	if p.ctx.Err() != nil {
		return errors.Join(err, fmt.Errorf("job %s is left", name))
	}
	_, e := p.output("delete", "job", name, "--wait=false")
	return errors.Join(err, e)
}

// listing makes a job that lists backups of one that makes them.
func listing(template json.RawMessage) (spec map[string]any, err error) {
	var t struct {
		Template struct {
			Spec struct {
				Containers []struct {
					Args []string `json:"args"`
				} `json:"containers"`
			} `json:"spec"`
		} `json:"template"`
	}
	if err := json.Unmarshal(template, &t); err != nil {
		return nil, err
	}
	if len(t.Template.Spec.Containers) == 0 {
		return nil, errors.New("it has no container")
	}
	dir := ""
	for _, a := range t.Template.Spec.Containers[0].Args {
		if d, ok := strings.CutPrefix(a, "--into="); ok {
			dir = d
		}
	}
	if dir == "" {
		return nil, errors.New("it does not say where backups are")
	}
	if err := json.Unmarshal(template, &spec); err != nil {
		return nil, err
	}
	spec["backoffLimit"], spec["activeDeadlineSeconds"] = 0, 300
	pod := spec["template"].(map[string]any)["spec"].(map[string]any)
	pod["containers"].([]any)[0].(map[string]any)["args"] = []string{"restore", "--list", "--from=" + dir}
	return spec, nil
}
