//go:build kubernetes

package kubernetes

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// provisioner makes volumes of the storage class: directories of this machine, each for the
// node that the scheduler has chosen, as local disks are. It lets them grow, as a driver does.
const provisioner = "trireme.test/directories"

func (c *cluster) provision() {
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-c.stop:
			return
		case <-tick.C:
		}
		if err := c.provisionOnce(); err != nil {
			c.outer.Logf("volumes: %v", err) // and again
		}
	}
}

func (c *cluster) provisionOnce() error {
	var claims list[claim]
	if err := c.api.get("/api/v1/persistentvolumeclaims", &claims); err != nil {
		return err
	}
	for i := range claims.Items {
		cl := &claims.Items[i]
		if want := cl.Spec.Resources.Requests; cl.Status.Phase == "Bound" && cl.Status.Capacity != want {
			if err := c.growVolume(cl, want); err != nil {
				return err
			}
		}
		node := cl.Meta.Annotations["volume.kubernetes.io/selected-node"]
		if cl.Spec.Volume != "" || node == "" || cl.Meta.Deleted != nil || cl.Spec.Class == nil || *cl.Spec.Class != class {
			continue
		}
		if err := c.makeVolume(cl, node); err != nil {
			return err
		}
	}
	var volumes list[volume]
	if err := c.api.get("/api/v1/persistentvolumes", &volumes); err != nil {
		return err
	}
	for _, v := range volumes.Items {
		if v.Status.Phase != "Released" && v.Status.Phase != "Failed" || v.Meta.Deleted != nil {
			continue
		}
		if c.volumes > 0 { // once: another look may find it taken out
			_ = syscall.Unmount(v.Spec.Local.Path, syscall.MNT_DETACH)
		}
		if err := os.RemoveAll(v.Spec.Local.Path); err != nil {
			return err
		}
		if err := c.api.remove("/api/v1/persistentvolumes/" + v.Meta.Name); err != nil {
			return err
		}
	}
	return nil
}

func (c *cluster) makeVolume(cl *claim, node string) error {
	name := "volume-" + cl.Meta.UID
	path := filepath.Join(c.dir, "volumes", node, name)
	_, err := os.Stat(path)
	if err := os.MkdirAll(path, 0o755); err != nil {
		return err
	}
	if c.volumes > 0 && err != nil { // it was not there yet
		if err := syscall.Mount("tmpfs", path, "tmpfs", 0, fmt.Sprintf("size=%d,mode=755", c.volumes)); err != nil {
			return err
		}
	}
	return c.api.create("/api/v1/persistentvolumes", map[string]any{
		"metadata": map[string]any{"name": name, "annotations": map[string]string{"pv.kubernetes.io/provisioned-by": provisioner}},
		"spec": map[string]any{
			"capacity": cl.Spec.Resources.Requests, "accessModes": cl.Spec.Modes, "storageClassName": class, "persistentVolumeReclaimPolicy": "Delete",
			"local":    map[string]string{"path": path},
			"claimRef": map[string]string{"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": cl.Meta.Namespace, "name": cl.Meta.Name, "uid": cl.Meta.UID},
			"nodeAffinity": map[string]any{"required": map[string]any{"nodeSelectorTerms": []any{map[string]any{"matchExpressions": []any{
				map[string]any{"key": "kubernetes.io/hostname", "operator": "In", "values": []string{node}}}}}}},
		}})
}

// growVolume gives a claim what it asks for.
func (c *cluster) growVolume(cl *claim, want storage) error {
	if err := c.api.call("PATCH", "/api/v1/persistentvolumes/"+cl.Spec.Volume, map[string]any{"spec": map[string]any{"capacity": want}}, nil); err != nil {
		return err
	}
	return c.api.call("PATCH", "/api/v1/namespaces/"+cl.Meta.Namespace+"/persistentvolumeclaims/"+cl.Meta.Name+"/status",
		map[string]any{"status": map[string]any{"capacity": want}}, nil)
}
