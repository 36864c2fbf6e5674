// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/espalier-dev/espalier/hack/images/internal/image"
)

// list is a flag that may be given several times.
type list []string

func (l *list) String() string     { return strings.Join(*l, ",") }
func (l *list) Set(s string) error { *l = append(*l, s); return nil }

type buildOptions struct {
	binaries, extra, labels list
	entrypoint, tag, out    string
}

func runBuild(args []string) error {
	var o buildOptions
	flags := flag.NewFlagSet("build", flag.ContinueOnError)
	flags.Var(&o.binaries, "binary", "static binary, as PATH or OS/ARCH=PATH")
	flags.Var(&o.extra, "add", "another file for the image, as SOURCE or SOURCE:/PATH")
	flags.Var(&o.labels, "label", "KEY=VALUE")
	flags.StringVar(&o.entrypoint, "entrypoint", "", "where the binary lies in the image")
	flags.StringVar(&o.tag, "tag", "", "the image's name")
	flags.StringVar(&o.out, "o", "", "the tarball to write")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if len(o.binaries) == 0 || !strings.HasPrefix(o.entrypoint, "/") || o.tag == "" || o.out == "" {
		return errors.New("build wants --binary, --entrypoint with a path from the root, --tag and -o")
	}
	return o.build()
}

func (o buildOptions) build() error {
	binaries, err := parseBinaries(o.binaries)
	if err != nil {
		return err
	}
	var images []v1.Image
	for _, platform := range slices.Sorted(maps.Keys(binaries)) {
		built, err := o.image(platform, binaries[platform])
		if err != nil {
			return err
		}
		images = append(images, built)
	}
	digest, err := image.Write(o.out, o.tag, images)
	if err != nil {
		return err
	}
	fmt.Println(digest)
	return nil
}

func (o buildOptions) image(platform, binary string) (v1.Image, error) {
	parsed, err := v1.ParsePlatform(platform)
	if err != nil {
		return nil, err
	}
	labels, err := parseLabels(o.labels)
	if err != nil {
		return nil, err
	}
	return image.Build(image.Spec{
		Platform: *parsed, Entrypoint: []string{o.entrypoint}, WorkingDir: "/", Labels: labels,
		Layers: [][]image.File{image.BaseFiles(), image.Programs(binary, o.entrypoint, o.extra)},
	})
}

// parseBinaries maps each platform to its binary; PATH alone is for this machine's.
func parseBinaries(values []string) (map[string]string, error) {
	binaries := map[string]string{}
	for _, value := range values {
		platform, file, found := strings.Cut(value, "=")
		if !found {
			platform, file = "linux/"+runtime.GOARCH, value
		}
		if _, twice := binaries[platform]; twice {
			return nil, fmt.Errorf("two binaries for %s", platform)
		}
		binaries[platform] = file
	}
	return binaries, nil
}

func parseLabels(values []string) (map[string]string, error) {
	labels := map[string]string{}
	for _, value := range values {
		key, text, found := strings.Cut(value, "=")
		if !found {
			return nil, fmt.Errorf("label %q is not KEY=VALUE", value)
		}
		labels[key] = text
	}
	return labels, nil
}
