package main

import (
	"bufio"
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"slices"
	"strings"
)

// survivors has, for each made mutant that may survive, the reason by the name of the edit.
type survivors map[string]string

// readSurvivors reads a file with a line for each: the name of the edit, a tab, and the reason.
func readSurvivors(file string) (survivors, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	known := survivors{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		name, reason, ok := strings.Cut(lines.Text(), "\t")
		if !ok || reason == "" {
			return nil, fmt.Errorf("%s: a line is the name of a mutant, a tab, and the reason why it may survive: %q", file, lines.Text())
		}
		known[name] = reason
	}
	return known, nil
}

// check returns an error that has each mutant which is explained and not made any more.
func (known survivors) check() error {
	edits := map[string]map[string]bool{} // by file, the names
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(known)) {
		file, _, _ := strings.Cut(name, " ")
		if edits[file] == nil {
			names, err := editsOf(file)
			if err != nil {
				errs = append(errs, err)
			}
			edits[file] = names
		}
		if !edits[file][name] {
			errs = append(errs, fmt.Errorf("survivors.txt explains a mutant that is not made any more: %s", name))
		}
	}
	return errors.Join(errs...)
}

// editsOf returns the names of the edits of a file.
func editsOf(file string) (map[string]bool, error) {
	names := map[string]bool{}
	source, err := os.ReadFile(file)
	if err != nil {
		return names, err
	}
	set := token.NewFileSet()
	syntax, err := parser.ParseFile(set, file, source, parser.SkipObjectResolution)
	if err != nil {
		return names, err
	}
	for _, e := range find(set, file, source, syntax) {
		names[e.name()] = true
	}
	return names, nil
}
