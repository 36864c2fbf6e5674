// SPDX-License-Identifier: Apache-2.0

// Package host is all that the cluster does to the machine outside its own folder:
// packages, addresses, firewall rules, mounts, control groups, and undoing those.
package host

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// required maps a program to the Debian package that brings it.
var required = [][2]string{
	{"runc", "runc"},
	{"iptables", "iptables"},
	{"conntrack", "conntrack"},
	{"ipset", "ipset"},
	{"ip", "iproute2"},
	{"mount", "mount"},
}

// EnsurePackages installs what is missing. It touches nothing when all is there.
func EnsurePackages(ctx context.Context, log func(string, ...any)) error {
	missing := missingPackages(exec.LookPath)
	if len(missing) == 0 {
		return nil
	}
	log("installing %s", strings.Join(missing, " "))
	if err := aptGet(ctx, "update", "-qq"); err != nil {
		return err
	}
	return aptGet(ctx, append([]string{"install", "-y", "-qq", "--no-install-recommends"}, missing...)...)
}

func missingPackages(lookPath func(string) (string, error)) []string {
	var missing []string
	for _, r := range required {
		if _, err := lookPath(r[0]); err != nil {
			missing = append(missing, r[1])
		}
	}
	return missing
}

func aptGet(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, "apt-get", args...)
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("apt-get %s: %w\n%s", args[0], err, out)
	}
	return nil
}
