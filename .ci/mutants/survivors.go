package main

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
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

// check returns an error for an explanation of a mutant of m that is not made any more.
func (known survivors) check(m *made) error {
	made := map[string]bool{}
	for _, e := range m.found {
		made[e.name()] = true
	}
	for name := range known {
		file, _, _ := strings.Cut(name, " ")
		if filepath.Dir(file) == m.pkg && !made[name] {
			return fmt.Errorf("survivors.txt explains a mutant that is not made any more, remove the line: %s", name)
		}
	}
	return nil
}
