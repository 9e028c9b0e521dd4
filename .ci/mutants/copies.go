package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/printer"
	"go/token"
	"slices"
	"strings"
)

// This file makes the copies of functions, each of which is one mutant.

// rewrite returns a file in which each function with mutants calls the mutant that is chosen, followed by the mutants: copies of
// the function.
func (m *made) rewrite(file string, source []byte) ([]byte, error) {
	type insertion struct {
		offset int
		text   string
	}
	var calls []insertion
	var copies bytes.Buffer
	var last *ast.FuncDecl
	for i, e := range m.edits {
		if e.file != file || e.decl == nil {
			continue
		}
		d := e.decl
		if d != last { // the edits of a function follow each other
			last = d
			nameAll(d)
		}
		head, call, err := m.copyOf(d, i+1)
		if err != nil {
			return nil, err
		}
		open, end := m.set.Position(d.Body.Lbrace).Offset, m.set.Position(d.Body.End()).Offset
		calls = append(calls, insertion{open + 1, fmt.Sprintf(" if mutantAtWork == %d { %s };", i+1, call)})
		body := splice(source[open:end], e.start-open, e.end-open, e.text)
		fmt.Fprintf(&copies, "\n%s %s\n", head, body)
	}
	var out bytes.Buffer
	functions := m.functions()
	done := 0
	for _, decl := range m.syntax[file].Decls {
		d, ok := decl.(*ast.FuncDecl)
		if !ok || d.Body == nil {
			continue
		}
		open := m.set.Position(d.Body.Lbrace).Offset
		var here []string
		for _, c := range calls {
			if c.offset == open+1 {
				here = append(here, c.text)
			}
		}
		if len(here) == 0 {
			continue
		}
		head, err := m.head(d, d.Name.Name)
		if err != nil {
			return nil, err
		}
		out.Write(source[done:m.set.Position(d.Type.Func).Offset])
		fmt.Fprintf(&out, "%s { noteMutant(%d);%s", head, slices.Index(functions, d), strings.Join(here, ""))
		done = open + 1
	}
	out.Write(source[done:])
	out.Write(copies.Bytes())
	return out.Bytes(), nil
}

// nameAll gives a name to the receiver and to each parameter that has none, so that they can be passed on.
func nameAll(d *ast.FuncDecl) {
	count := 0
	name := func(fields *ast.FieldList) {
		if fields == nil {
			return
		}
		for _, field := range fields.List {
			if field.Names == nil {
				field.Names = []*ast.Ident{{Name: "_"}}
			}
			for _, n := range field.Names {
				if n.Name == "_" {
					n.Name = fmt.Sprint("mutant", count)
					count++
				}
			}
		}
	}
	name(d.Recv)
	name(d.Type.Params)
}

// head returns the head of a function with another name.
func (m *made) head(d *ast.FuncDecl, name string) (string, error) {
	var out bytes.Buffer
	err := printer.Fprint(&out, token.NewFileSet(), &ast.FuncDecl{Recv: d.Recv, Name: ast.NewIdent(name), Type: d.Type})
	return strings.ReplaceAll(out.String(), "\n", " "), err
}

// copyOf returns the head of the n-th mutant's function, and the statements that call it.
func (m *made) copyOf(d *ast.FuncDecl, n int) (head, call string, err error) {
	name := fmt.Sprintf("mutant%d_%s", n, d.Name.Name) // not exported: a test may list the methods of a type
	if head, err = m.head(d, name); err != nil {
		return "", "", err
	}
	call = name
	if d.Recv != nil {
		call = d.Recv.List[0].Names[0].Name + "." + name
	}
	if d.Type.TypeParams != nil {
		call += "[" + strings.Join(names(d.Type.TypeParams), ", ") + "]"
	}
	arguments := strings.Join(names(d.Type.Params), ", ")
	if p := d.Type.Params.List; len(p) > 0 {
		if _, variadic := p[len(p)-1].Type.(*ast.Ellipsis); variadic {
			arguments += "..."
		}
	}
	call += "(" + arguments + ")"
	if d.Type.Results == nil {
		return head, call + "; return", nil
	}
	return head, "return " + call, nil
}

func names(fields *ast.FieldList) (all []string) {
	for _, field := range fields.List {
		for _, n := range field.Names {
			all = append(all, n.Name)
		}
	}
	return all
}
