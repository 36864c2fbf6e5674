// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/template/parse"
)

// checkUse refuses templates that use a value which values.yaml does not have,
// and values that no template uses.
func checkUse(folder string, values *value) error {
	u := &use{values: values, used: map[*value]bool{}}
	err := filepath.WalkDir(folder, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		return u.template(file, string(text))
	})
	if err != nil {
		return err
	}
	for _, leaf := range values.leaves() {
		if !u.used[leaf] {
			u.wrong = append(u.wrong, fmt.Errorf("no template uses the value %s", leaf.path))
		}
	}
	return errors.Join(u.wrong...)
}

// use walks templates and notes which values they use.
type use struct {
	values *value
	used   map[*value]bool
	wrong  []error
	file   string
}

// place is what "." or a variable stands for: a path below the root, or, when
// it is nil, something that is not followed.
type place []string

// scope is what the names of a template stand for where it is read.
type scope struct {
	dot       place
	variables map[string]place
}

func (s scope) inner(dot place) scope {
	return scope{dot: dot, variables: maps.Clone(s.variables)}
}

func (u *use) template(file, text string) error {
	tree := parse.New(file)
	tree.Mode = parse.SkipFuncCheck
	trees := map[string]*parse.Tree{}
	if _, err := tree.Parse(text, "", "", trees); err != nil {
		return err
	}
	u.file = file
	for _, name := range slices.Sorted(maps.Keys(trees)) {
		root := place{}
		u.nodes(trees[name].Root, scope{dot: root, variables: map[string]place{"$": root}})
	}
	return nil
}

func (u *use) nodes(list *parse.ListNode, s scope) {
	if list == nil {
		return
	}
	for _, node := range list.Nodes {
		switch n := node.(type) {
		case *parse.ActionNode:
			u.assign(n.Pipe, s)
		case *parse.IfNode:
			u.assign(n.Pipe, s)
			u.nodes(n.List, s.inner(s.dot))
			u.nodes(n.ElseList, s.inner(s.dot))
		case *parse.WithNode:
			u.nodes(n.List, s.inner(u.assign(n.Pipe, s)))
			u.nodes(n.ElseList, s.inner(s.dot))
		case *parse.RangeNode:
			inner := s.inner(nil)
			u.pipe(n.Pipe, s)
			for _, variable := range n.Pipe.Decl {
				inner.variables[variable.Ident[0]] = nil
			}
			u.nodes(n.List, inner)
			u.nodes(n.ElseList, s.inner(s.dot))
		}
	}
}

// assign reads a pipe, sets the variables that it declares, and gives what it
// stands for.
func (u *use) assign(pipe *parse.PipeNode, s scope) place {
	to := u.pipe(pipe, s)
	for _, variable := range pipe.Decl {
		s.variables[variable.Ident[0]] = to
	}
	return to
}

// pipe reads a pipe. A lone name stands for a place; whatever is handed to a
// function is used whole.
func (u *use) pipe(pipe *parse.PipeNode, s scope) place {
	lone := len(pipe.Cmds) == 1 && len(pipe.Cmds[0].Args) == 1
	var to place
	for _, command := range pipe.Cmds {
		for _, argument := range command.Args {
			to = u.argument(argument, s, !lone)
		}
	}
	if !lone {
		return nil
	}
	return to
}

func (u *use) argument(node parse.Node, s scope, whole bool) place {
	switch n := node.(type) {
	case *parse.PipeNode:
		return u.pipe(n, s)
	case *parse.DotNode:
		return u.at(s.dot, nil, whole)
	case *parse.FieldNode:
		return u.at(s.dot, n.Ident, whole)
	case *parse.VariableNode:
		return u.at(s.variables[n.Ident[0]], n.Ident[1:], whole)
	}
	return nil
}

// at notes the use of a place, and gives it.
func (u *use) at(from place, names []string, whole bool) place {
	if from == nil {
		return nil
	}
	to := append(slices.Clone(from), names...)
	if len(to) == 0 || to[0] != "Values" {
		return to
	}
	v := u.values.find(to[1:])
	switch {
	case v == nil:
		u.wrong = append(u.wrong, fmt.Errorf("%s uses .%s, which values.yaml does not have", u.file, strings.Join(to, ".")))
	case !v.group():
		u.used[v] = true
	case whole && v != u.values:
		for _, leaf := range v.leaves() {
			u.used[leaf] = true
		}
	}
	return to
}
