package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"strings"
)

// edit is a mutant that the command makes by itself: one change of one place of a file.
type edit struct {
	file       string // its path from the root of the repository
	start, end int    // the bytes of the file that text replaces
	text       string
	function   string // the function or method, or "" for a declaration of the package
	decl       *ast.FuncDecl
	what       string // what the edit does, in one line; with a number, if other edits of the function have the same text
	line       int
}

// name identifies the edit. The name stays the same while the function does not change.
func (e *edit) name() string { return fmt.Sprintf("%s %s: %s", e.file, e.function, e.what) }

// operators has, for each binary operator, the operator that takes its place.
var operators = map[token.Token]token.Token{
	token.EQL: token.NEQ, token.NEQ: token.EQL,
	token.LSS: token.LEQ, token.LEQ: token.LSS, token.GTR: token.GEQ, token.GEQ: token.GTR,
	token.LAND: token.LOR, token.LOR: token.LAND,
	token.ADD: token.SUB, token.SUB: token.ADD, token.MUL: token.QUO, token.QUO: token.MUL, token.REM: token.MUL,
	token.AND: token.OR, token.OR: token.AND, token.SHL: token.SHR, token.SHR: token.SHL,
}

// finder finds the edits of a file.
type finder struct {
	set      *token.FileSet
	file     string
	source   []byte
	decl     *ast.FuncDecl
	function string
	noise    map[ast.Node]bool // nodes that have no edits
	named    map[string]int    // by name: how many edits have it
	edits    []*edit
}

// find returns the edits of a file: an operator is replaced, a condition is always or never true, a constant is one more, a
// statement is removed. Some of them do not compile. These places have none, because no test can or should see a change there:
//   - the capacity in make(type, length, capacity)
//   - a number beside an error, or beside false, in a return statement: no caller may use it
//   - the methods String and Error
func find(set *token.FileSet, file string, source []byte, syntax *ast.File) []*edit {
	f := &finder{set: set, file: file, source: source, noise: map[ast.Node]bool{}, named: map[string]int{}}
	for _, decl := range syntax.Decls {
		f.decl, f.function = nil, ""
		switch d := decl.(type) {
		case *ast.FuncDecl:
			if d.Body == nil || d.Name.Name == "init" || d.Name.Name == "String" || d.Name.Name == "Error" {
				continue
			}
			f.decl, f.function = d, title(d)
			ast.Inspect(d.Body, f.visit)
		case *ast.GenDecl:
			if d.Tok != token.IMPORT {
				ast.Inspect(d, f.visit)
			}
		}
	}
	return f.edits
}

// title returns the name of a function, with its receiver.
func title(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return d.Name.Name
	}
	of := d.Recv.List[0].Type
	if star, ok := of.(*ast.StarExpr); ok {
		of = star.X
	}
	switch generic := of.(type) {
	case *ast.IndexExpr:
		of = generic.X
	case *ast.IndexListExpr:
		of = generic.X
	}
	return of.(*ast.Ident).Name + "." + d.Name.Name
}

// visit adds the edits of a node.
func (f *finder) visit(node ast.Node) bool {
	if f.noise[node] {
		return false
	}
	switch n := node.(type) {
	case *ast.BinaryExpr:
		if other, ok := operators[n.Op]; ok {
			f.replace(n.X.Pos(), n.Y.End(), f.text(n.X)+" "+other.String()+" "+f.text(n.Y))
		}
	case *ast.IfStmt:
		f.condition(n.Cond)
	case *ast.SwitchStmt:
		if n.Tag == nil {
			for _, clause := range n.Body.List {
				for _, condition := range clause.(*ast.CaseClause).List {
					f.condition(condition)
				}
			}
		}
	case *ast.CallExpr:
		if name, ok := n.Fun.(*ast.Ident); ok && name.Name == "make" && len(n.Args) == 3 {
			f.noise[n.Args[2]] = true
		}
	case *ast.ReturnStmt:
		f.unused(n)
	case *ast.ForStmt:
		if n.Cond != nil {
			f.replace(n.Cond.Pos(), n.Cond.End(), "("+f.text(n.Cond)+") && false")
		}
	case *ast.Ident:
		switch n.Name {
		case "true":
			f.replace(n.Pos(), n.End(), "false")
		case "false":
			f.replace(n.Pos(), n.End(), "true")
		}
	case *ast.BasicLit:
		if n.Kind == token.INT || n.Kind == token.FLOAT {
			f.replace(n.Pos(), n.End(), "("+n.Value+" + 1)")
		}
	case *ast.ExprStmt, *ast.IncDecStmt, *ast.SendStmt, *ast.BranchStmt, *ast.DeferStmt:
		f.replace(n.Pos(), n.End(), "")
	case *ast.AssignStmt:
		if n.Tok != token.DEFINE {
			f.replace(n.Pos(), n.End(), "")
		}
	case *ast.StructType, *ast.InterfaceType: // tags
		return false
	}
	return true
}

// condition adds two edits: a condition is always true, or never.
func (f *finder) condition(c ast.Expr) {
	f.replace(c.Pos(), c.End(), "("+f.text(c)+") || true")
	f.replace(c.Pos(), c.End(), "("+f.text(c)+") && false")
}

// unused finds the numbers of a return statement that no caller may use.
func (f *finder) unused(n *ast.ReturnStmt) {
	if f.decl == nil || f.decl.Type.Results == nil || len(n.Results) < 2 {
		return
	}
	last := f.text(n.Results[len(n.Results)-1])
	types := f.decl.Type.Results.List
	if last == "false" || last != "nil" && f.text(types[len(types)-1].Type) == "error" {
		for _, result := range n.Results {
			if _, ok := result.(*ast.BasicLit); ok {
				f.noise[result] = true
			}
		}
	}
}

func (f *finder) text(node ast.Node) string {
	return string(f.source[f.offset(node.Pos()):f.offset(node.End())])
}

func (f *finder) offset(p token.Pos) int { return f.set.Position(p).Offset }

// replace adds the edit that replaces what stands between two places.
func (f *finder) replace(from, to token.Pos, text string) {
	e := &edit{
		file: f.file, start: f.offset(from), end: f.offset(to), text: text,
		function: f.function, decl: f.decl, line: f.set.Position(from).Line,
	}
	old := string(f.source[e.start:e.end])
	switch {
	case text == "":
		e.what = "without " + old
	default:
		e.what = old + " -> " + text
	}
	e.what = strings.Join(strings.Fields(e.what), " ")
	name := e.name()
	if f.named[name]++; f.named[name] > 1 {
		e.what += fmt.Sprintf(" (%d)", f.named[name])
	}
	f.edits = append(f.edits, e)
}
