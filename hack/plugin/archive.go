// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"
	"time"

	"sigs.k8s.io/yaml"
)

// archive of one platform.
type archive struct {
	name, system, arch string
	// binary is the name of the program in it.
	binary  string
	content []byte
	sum     string
}

// epoch is the date of all files: archives tell of no build.
var epoch = time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)

type file struct {
	name    string
	mode    int64
	content []byte
}

// pack makes the archive of a platform: zip for Windows, tar.gz for others.
func pack(platform string, binary, licence []byte) (archive, error) {
	system, arch, _ := strings.Cut(platform, "/")
	a := archive{system: system, arch: arch, binary: program}
	if system == "windows" {
		a.binary += ".exe"
	}
	files := []file{{a.binary, 0o755, binary}, {"LICENSE", 0o644, licence}}
	var b bytes.Buffer
	var err error
	a.name = fmt.Sprintf("%s_%s_%s", program, system, arch)
	if system == "windows" {
		a.name += ".zip"
		err = zipped(&b, files)
	} else {
		a.name += ".tar.gz"
		err = tarred(&b, files)
	}
	a.content = b.Bytes()
	sum := sha256.Sum256(a.content)
	a.sum = hex.EncodeToString(sum[:])
	return a, err
}

func zipped(b *bytes.Buffer, files []file) error {
	w := zip.NewWriter(b)
	for _, f := range files {
		entry, err := w.CreateHeader(&zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: epoch})
		if err != nil {
			return err
		}
		if _, err := entry.Write(f.content); err != nil {
			return err
		}
	}
	return w.Close()
}

func tarred(b *bytes.Buffer, files []file) error {
	z, err := gzip.NewWriterLevel(b, gzip.BestCompression)
	if err != nil {
		return err
	}
	w := tar.NewWriter(z)
	for _, f := range files {
		if err := w.WriteHeader(&tar.Header{Name: f.name, Mode: f.mode, Size: int64(len(f.content)), ModTime: epoch, Format: tar.FormatUSTAR}); err != nil {
			return err
		}
		if _, err := w.Write(f.content); err != nil {
			return err
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	return z.Close()
}

// sums is a file for "sha256sum --check".
func sums(archives []archive) string {
	var b strings.Builder
	for _, a := range archives {
		fmt.Fprintf(&b, "%s  %s\n", a.sum, a.name)
	}
	return b.String()
}

// semantic is a version as krew takes it.
var semantic = regexp.MustCompile(`^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$`)

type plugin struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec spec `json:"spec"`
}

type spec struct {
	Version          string     `json:"version"`
	Homepage         string     `json:"homepage"`
	ShortDescription string     `json:"shortDescription"`
	Description      string     `json:"description"`
	Platforms        []platform `json:"platforms"`
}

type platform struct {
	Selector struct {
		MatchLabels map[string]string `json:"matchLabels"`
	} `json:"selector"`
	URI    string `json:"uri"`
	SHA256 string `json:"sha256"`
	Bin    string `json:"bin"`
}

// krew writes the manifest of a version. One that is not semantic is for this
// machine alone, and is called v0.0.0 with it.
func krew(version, url string, archives []archive) ([]byte, error) {
	if !semantic.MatchString(version) {
		version = "v0.0.0-" + strings.Trim(regexp.MustCompile(`[^0-9A-Za-z.-]+`).ReplaceAllString(version, "-"), "-.")
	}
	var p plugin
	p.APIVersion, p.Kind = "krew.googlecontainertools.github.com/v1alpha2", "Plugin"
	p.Metadata.Name = "mcp"
	p.Spec = spec{
		Version: version, Homepage: "https://" + module, ShortDescription: "See, use and keep the MCP servers of a cluster",
		Description: "See the fleet of MCP servers that Espalier runs, why one is not ready, call\n" +
			"its tools, connect a desktop client to it, bring existing configurations in,\nand pin what it promised.\n",
	}
	for _, a := range archives {
		var one platform
		one.Selector.MatchLabels = map[string]string{"os": a.system, "arch": a.arch}
		one.URI, one.SHA256, one.Bin = strings.ReplaceAll(url, "VERSION", version)+"/"+a.name, a.sum, a.binary
		p.Spec.Platforms = append(p.Spec.Platforms, one)
	}
	return yaml.Marshal(p)
}
