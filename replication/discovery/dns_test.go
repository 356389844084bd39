package discovery

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
)

type fakeDNS struct {
	srv   map[string][]*net.SRV
	hosts map[string][]string
	err   error
}

func (f *fakeDNS) LookupSRV(_ context.Context, service, proto, name string) (string, []*net.SRV, error) {
	if service != "" || proto != "" {
		return "", nil, errors.New("wrong lookup")
	}
	if f.err != nil {
		return "", nil, f.err
	}
	if f.srv[name] == nil {
		return "", nil, &net.DNSError{IsNotFound: true, Name: name}
	}
	return name, f.srv[name], nil
}

func (f *fakeDNS) LookupHost(_ context.Context, host string) ([]string, error) {
	if f.err != nil {
		return nil, f.err
	}
	if f.hosts[host] == nil {
		return nil, &net.DNSError{IsNotFound: true, Name: host}
	}
	return f.hosts[host], nil
}

func TestDNSPattern(t *testing.T) {
	ctx, f := context.Background(), &fakeDNS{}
	d, err := NewDNS(DNSOptions{Name: "c", Expect: 3, Pattern: "t-{}.t.svc:7000", Service: "t.svc:7000", Resolver: f})
	if err != nil {
		t.Fatal(err)
	}
	p, err := d.Plan(ctx)
	if err != nil || fmt.Sprint(p.Nodes) != "[t-0.t.svc:7000 t-1.t.svc:7000 t-2.t.svc:7000]" || !p.complete() {
		t.Errorf("%+v, %v", p, err)
	}
	if c, err := d.Contacts(ctx); err != nil || len(c) != 3 {
		t.Errorf("nobody resolves: %v, %v", c, err)
	}
	f.hosts = map[string][]string{"t.svc": {"10.0.0.9", "fd00::1"}}
	if c, err := d.Contacts(ctx); err != nil || fmt.Sprint(c) != "[10.0.0.9:7000 [fd00::1]:7000 t-0.t.svc:7000 t-1.t.svc:7000 t-2.t.svc:7000]" {
		t.Errorf("%v, %v", c, err)
	}
}

// All nodes are asked by the names that records tell, and who they are is known if the records are.
func TestDNSMembers(t *testing.T) {
	ctx, f := context.Background(), &fakeDNS{}
	d, err := NewDNS(DNSOptions{Name: "c", Expect: 1, Pattern: "t-{}.t.svc:7000", Members: "_peers._tcp.t.svc", Resolver: f})
	if err != nil {
		t.Fatal(err)
	}
	if all, known, err := d.Everybody(ctx); err != nil || !known || len(all) != 0 {
		t.Errorf("no records: %v, %v, %v", all, known, err)
	}
	f.srv = map[string][]*net.SRV{"_peers._tcp.t.svc": {{Target: "t-1.t.svc.", Port: 7000}, {Target: "t-0.t.svc.", Port: 7000}, {Target: "t-read-0.t.svc.", Port: 7000}}}
	const want = "[t-0.t.svc:7000 t-1.t.svc:7000 t-read-0.t.svc:7000]"
	if all, known, err := d.Everybody(ctx); err != nil || !known || fmt.Sprint(all) != want {
		t.Errorf("%v, %v, %v", all, known, err)
	}
	if c, err := d.Contacts(ctx); err != nil || fmt.Sprint(c) != want {
		t.Errorf("%v, %v", c, err)
	}
	f.err = errors.New("server misbehaving")
	if _, _, err := d.Everybody(ctx); !errors.Is(err, f.err) {
		t.Errorf("%v", err)
	}
	if c, err := d.Contacts(ctx); err != nil || fmt.Sprint(c) != "[t-0.t.svc:7000]" {
		t.Errorf("founders can be asked: %v, %v", c, err)
	}
}

func TestDNSRecords(t *testing.T) {
	ctx, f := context.Background(), &fakeDNS{}
	d, err := NewDNS(DNSOptions{Name: "c", Expect: 2, SRV: "_peer._tcp.t.svc", Resolver: f})
	if err != nil {
		t.Fatal(err)
	}
	if p, err := d.Plan(ctx); err != nil || p.complete() {
		t.Errorf("no records: %+v, %v", p, err)
	}
	f.srv = map[string][]*net.SRV{"_peer._tcp.t.svc": {{Target: "t-1.t.svc.", Port: 7000}, {Target: "t-0.t.svc.", Port: 7000}, {Target: "t-0.t.svc.", Port: 7000}}}
	if p, err := d.Plan(ctx); err != nil || !p.complete() || fmt.Sprint(p.Nodes) != "[t-0.t.svc:7000 t-1.t.svc:7000]" {
		t.Errorf("%+v, %v", p, err)
	}
	f.srv["_peer._tcp.t.svc"] = append(f.srv["_peer._tcp.t.svc"], &net.SRV{Target: "t-2.t.svc.", Port: 7000})
	if p, err := d.Plan(ctx); err != nil || p.complete() {
		t.Errorf("more than expected: %+v, %v", p, err)
	}
	f.err = errors.New("server misbehaving")
	if _, err := d.Plan(ctx); !errors.Is(err, f.err) {
		t.Errorf("%v", err)
	}
	if _, err := d.Contacts(ctx); !errors.Is(err, f.err) {
		t.Errorf("%v", err)
	}
}

func TestDNSOptions(t *testing.T) {
	for want, opts := range map[string]DNSOptions{
		"either a pattern":       {Name: "c", Expect: 1},
		"or the name of SRV":     {Name: "c", Expect: 1, SRV: "s", Pattern: "t-{}:1"},
		"how many nodes found":   {Name: "c", SRV: "s"},
		"needs {} once":          {Name: "c", Expect: 1, Pattern: "t:1"},
		"is no address":          {Name: "c", Expect: 1, Pattern: "t-{}"},
		`"t" is no address`:      {Name: "c", Expect: 1, SRV: "s", Service: "t"},
		"a cluster's name":       {Expect: 1, SRV: "s"},
		"at most 64 are allowed": {Name: "c", Expect: 1000, Pattern: "t-{}:1"},
	} {
		if _, err := NewDNS(opts); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
