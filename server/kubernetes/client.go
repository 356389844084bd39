package kubernetes

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

const (
	// patience is how long an answer may take: a stop waits for it.
	patience = 3 * time.Second
	// callAgain is the time between a call and the same one again, if that is to be.
	callAgain = 500 * time.Millisecond
	// answerMax bounds what is read of an answer.
	answerMax = 4 << 20
)

// Client calls the API of Kubernetes as the service account of this pod. It is safe for concurrent
// use.
type Client struct {
	base      string // of the API
	files     string // directory of the account's token, its namespace and the API's authority
	namespace string

	// Patient has calls made again, until their context ends, while their errors may pass by themselves. It is for callers that
	// have time, and that look, change and delete, which may be done twice.
	Patient bool

	mu        sync.Mutex
	authority []byte // that http trusts
	http      *http.Client
}

// refusal is an answer that is no success.
type refusal struct {
	code int
	text string
}

func (r *refusal) Error() string {
	return fmt.Sprintf("Kubernetes answers %d: %s", r.code, r.text)
}

// NewClient returns a client for the pod that this process runs in. credentials is the
// directory that Kubernetes mounts for its service account.
func NewClient(credentials string) (*Client, error) {
	namespace, err := os.ReadFile(filepath.Join(credentials, "namespace"))
	if err != nil {
		return nil, err
	}
	address := net.JoinHostPort(os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT"))
	if address == ":" {
		return nil, errors.New("this is no pod of Kubernetes: KUBERNETES_SERVICE_HOST is missing")
	}
	return &Client{base: "https://" + address, files: credentials, namespace: strings.TrimSpace(string(namespace))}, nil
}

// path is that of an object of the namespace.
func (c *Client) path(api, kind, name string) string {
	p := fmt.Sprintf("/%s/namespaces/%s/%s", api, c.namespace, kind)
	if name != "" {
		p += "/" + name
	}
	return p
}

// call makes a call; what is sent and what is answered may be nil.
func (c *Client) call(ctx context.Context, method, path string, send, answer any) error {
	for {
		err := c.callOnce(ctx, method, path, send, answer)
		if !c.Patient || !Passes(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(callAgain):
		}
	}
}

func (c *Client) callOnce(ctx context.Context, method, path string, send, answer any) error {
	var body io.Reader
	if send != nil {
		b, err := json.Marshal(send)
		if err != nil {
			return err
		}
		body = bytes.NewReader(b)
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, body)
	if err != nil {
		return err
	}
	token, err := os.ReadFile(filepath.Join(c.files, "token")) // it is renewed once in a while
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	req.Header.Set("Content-Type", "application/json")
	if method == http.MethodPatch {
		req.Header.Set("Content-Type", "application/merge-patch+json")
	}
	client, err := c.client()
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		c.giveUp(client)
		return unanswered{err}
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, answerMax))
	if err != nil {
		c.giveUp(client)
		return unanswered{err}
	}
	if resp.StatusCode/100 != 2 {
		var status struct{ Message string }
		if json.Unmarshal(b, &status) != nil || status.Message == "" {
			status.Message = http.StatusText(resp.StatusCode)
		}
		return &refusal{resp.StatusCode, status.Message}
	}
	if answer == nil {
		return nil
	}
	if err := json.Unmarshal(b, answer); err != nil {
		return fmt.Errorf("what Kubernetes answers: %w", err)
	}
	return nil
}

// client trusts the authority as it is now.
func (c *Client) client() (*http.Client, error) {
	authority, err := os.ReadFile(filepath.Join(c.files, "ca.crt"))
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.http == nil || !bytes.Equal(authority, c.authority) {
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(authority)
		if c.http != nil {
			c.http.CloseIdleConnections()
		}
		c.http = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12},
			MaxIdleConns: 1, IdleConnTimeout: time.Minute, ForceAttemptHTTP2: true}}
		c.authority = authority
	}
	return c.http, nil
}

// giveUp has the next call go by another connection than those of a client that has got no answer. A connection whose other end is gone without
// a word stays for a quarter of an hour, and each call that goes by it waits in vain. Unused it is closed after IdleConnTimeout.
func (c *Client) giveUp(client *http.Client) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.http == client {
		c.http = nil
	}
	client.CloseIdleConnections()
}

// unanswered is an error of the way to the API: it may have done what it was asked for, or not.
type unanswered struct{ error }

func (u unanswered) Unwrap() error { return u.error }

// Passes reports whether an error may pass by itself: the API does not answer for a while, as when it is upgraded.
func Passes(err error) bool {
	var no *refusal
	if errors.As(err, &no) {
		return no.code == http.StatusTooManyRequests || no.code >= http.StatusInternalServerError
	}
	return errors.As(err, new(unanswered))
}

// rightsEvery is how often AwaitRights asks.
const rightsEvery = 200 * time.Millisecond

// AwaitRights waits until this account may look at a set: its rights were given to it a moment ago, and are not in force everywhere.
func (c *Client) AwaitRights(ctx context.Context, set string) error {
	for {
		_, err := c.Set(ctx, set)
		if !Refused(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(rightsEvery):
		}
	}
}

// missing reports whether an error says that there is no such object.
func missing(err error) bool {
	var r *refusal
	return errors.As(err, &r) && r.code == http.StatusNotFound
}

// Refused reports whether an error says that this pod may not do what it asked for: it has no such right, or
// has it no more, as when its namespace is being deleted.
func Refused(err error) bool {
	var r *refusal
	return errors.As(err, &r) && (r.code == http.StatusForbidden || r.code == http.StatusUnauthorized)
}

// NamespaceEnds reports whether Kubernetes made nothing since the namespace is being deleted, which nobody can take back.
func NamespaceEnds(err error) bool {
	var r *refusal
	return errors.As(err, &r) && r.code == http.StatusForbidden && strings.Contains(r.text, "because it is being terminated")
}
