// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/espalier-dev/espalier/hack/images/internal/image"
)

// appDir is where the packages lie in the image, binDir where their commands are found.
const (
	appDir = "/app"
	binDir = "/usr/local/bin"
)

// Spec says which packages an image holds and which command it runs.
type Spec struct {
	// Packages are name@version; the image runs a command of the first one.
	Packages []string
	// Command names it, where the package has several.
	Command string
	// Tag is the image's name.
	Tag string
}

// build installs the packages and writes the image to out. Node and its libraries are a
// layer of their own, which the images of all packages share.
func build(ctx context.Context, spec Spec, out string) error {
	dir, err := os.MkdirTemp("", "npm-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := install(ctx, dir, spec.Packages); err != nil {
		return err
	}
	script, err := mainScript(dir, spec.Packages[0], spec.Command)
	if err != nil {
		return err
	}
	runtimeLayer, err := runtimeFiles()
	if err != nil {
		return err
	}
	app, err := folderFiles(filepath.Join(dir, "node_modules"), appDir+"/node_modules")
	if err != nil {
		return err
	}
	for _, each := range spec.Packages {
		links, err := commandLinks(dir, each)
		if err != nil {
			return err
		}
		app = append(app, links...)
	}
	built, err := image.Build(image.Spec{
		Platform:   v1.Platform{OS: "linux", Architecture: runtime.GOARCH},
		Entrypoint: []string{nodePath, path.Join(appDir, script)},
		WorkingDir: appDir,
		Layers:     [][]image.File{runtimeLayer, app},
	})
	if err != nil {
		return err
	}
	_, err = image.Write(out, spec.Tag, []v1.Image{built})
	return err
}

// commandLinks put the commands of a package where they are found.
func commandLinks(dir, spec string) ([]image.File, error) {
	scripts, err := commands(dir, spec)
	if err != nil {
		return nil, err
	}
	var links []image.File
	for _, name := range slices.Sorted(maps.Keys(scripts)) {
		links = append(links, image.File{Path: path.Join(binDir, name), Link: path.Join(appDir, scripts[name]), Mode: 0o777})
	}
	return links, nil
}

// folderFiles lists a folder's files as those of a folder in the image.
func folderFiles(dir, target string) ([]image.File, error) {
	var files []image.File
	err := filepath.WalkDir(dir, func(source string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		inside, err := filepath.Rel(dir, source)
		if err != nil {
			return err
		}
		file := image.File{Path: path.Join(target, filepath.ToSlash(inside)), Mode: 0o755}
		if entry.Type()&fs.ModeSymlink != 0 {
			file.Link, err = os.Readlink(source)
		} else {
			file.Source = source
		}
		files = append(files, file)
		return err
	})
	return files, err
}
