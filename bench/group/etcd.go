package main

import (
	"fmt"
	"net/url"
	"strings"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
)

// serveEtcd is a member of an etcd cluster as it is by default, but that it logs
// errors only.
func serveEtcd(f *roleFlags) error {
	peers, self, err := f.parsePeers()
	if err != nil {
		return err
	}
	cfg := embed.NewConfig()
	cfg.Dir = f.data
	cfg.Name = fmt.Sprint("member", f.id)
	cfg.LogLevel = "error"
	cfg.LogOutputs = []string{"/dev/null"}
	if f.verbose {
		cfg.LogLevel, cfg.LogOutputs = "info", []string{"stderr"}
	}
	peerURL, clientURL := url.URL{Scheme: "http", Host: self.addr}, url.URL{Scheme: "http", Host: f.listen}
	cfg.ListenPeerUrls, cfg.AdvertisePeerUrls = []url.URL{peerURL}, []url.URL{peerURL}
	cfg.ListenClientUrls, cfg.AdvertiseClientUrls = []url.URL{clientURL}, []url.URL{clientURL}
	var cluster []string
	for _, p := range peers {
		cluster = append(cluster, fmt.Sprintf("member%d=http://%s", p.id, p.addr))
	}
	cfg.InitialCluster = strings.Join(cluster, ",")
	e, err := embed.StartEtcd(cfg)
	if err != nil {
		return err
	}
	defer e.Close()
	select {
	case <-e.Server.ReadyNotify():
	case <-time.After(time.Minute):
		return fmt.Errorf("etcd is not ready after a minute")
	}
	ready()
	select {
	case err := <-e.Err():
		return err
	case <-told():
		return nil
	}
}
