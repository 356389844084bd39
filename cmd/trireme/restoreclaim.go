package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/triremedb/trireme/server/kubernetes"
)

const restoreClaimText = `In a pod of Kubernetes, makes the claim of the first member of a group that is not there yet, has a Job restore
a backup into it, and waits until that is done. Where the StatefulSet or a claim of its pods is there already it
says so, and changes nothing. The Helm chart runs it before an installation with restore.from.`

func runRestoreClaim(args []string) error {
	f := flags("restore-claim --sets=names --claim=file --job=file", restoreClaimText)
	sets := f.String("sets", "", "`names` of the StatefulSets of members, parted by commas; the first pod of the first one gets the data")
	claim := f.String("claim", "", "`file` with the claim, as JSON")
	job := f.String("job", "", "`file` with the Job, as JSON")
	credentials := f.String("credentials", "/var/run/secrets/kubernetes.io/serviceaccount", "`directory` with the token of the pod's account")
	if err := parse(f, args); err != nil {
		return err
	}
	if *sets == "" || *claim == "" || *job == "" || f.NArg() > 0 {
		return misuse(f, "--sets, --claim and --job are wanted, and nothing else")
	}
	c, err := kubernetes.NewClient(*credentials)
	if err != nil {
		return err
	}
	r := &kubernetes.Restore{Client: c, Sets: strings.Split(*sets, ","), Poll: time.Second, Say: func(format string, a ...any) { fmt.Printf(format+"\n", a...) }}
	var bad [2]error
	r.Claim, bad[0] = manifest(*claim)
	r.Job, bad[1] = manifest(*job)
	if err := errors.Join(bad[:]...); err != nil {
		return err
	}
	endWhenTold() // all that was done is found by whoever does it again
	return r.Run(context.Background())
}

// endWhenTold lets SIGTERM end this process, as the first one of a container as well, for which the kernel has no default. The code tells a Job that
// the pod was stopped from outside.
func endWhenTold() {
	told := make(chan os.Signal, 1)
	signal.Notify(told, syscall.SIGTERM)
	go func() {
		<-told
		os.Exit(kubernetes.ExitTerminated)
	}()
}

// manifest reads an object.
func manifest(name string) (json.RawMessage, error) {
	b, err := os.ReadFile(name)
	if err == nil && !json.Valid(b) {
		err = fmt.Errorf("%s is no JSON", name)
	}
	return b, err
}
