package span

import (
	"reflect"
	"strings"
	"testing"
	"unsafe"
)

// The test sets all fields by reflection, so that it covers fields that are added later.
func TestOrigin_FieldsAreBoundedAndCloned(t *testing.T) {
	var origin Origin
	fields := reflect.ValueOf(&origin).Elem()
	for i := range fields.NumField() {
		fields.Field(i).SetString(strings.Repeat("x", 1<<16))
	}
	origin.Normalize()
	clone := origin.Clone()
	if clone != origin {
		t.Error("a clone is another origin")
	}
	clones := reflect.ValueOf(clone)
	for i := range fields.NumField() {
		name, text, cloned := fields.Type().Field(i).Name, fields.Field(i).String(), clones.Field(i).String()
		longest := MaxOriginField
		switch name {
		case "ProcessTags":
			longest = MaxProcessTags
		case "Attributes":
			longest = MaxAttributes
		}
		if len(text) > longest {
			t.Errorf("%s has %d bytes", name, len(text))
		}
		if unsafe.StringData(text) == unsafe.StringData(cloned) {
			t.Errorf("the clone's %s is the origin's memory", name)
		}
	}
}

// Attributes are returned in the order in which they were appended, up to MaxAttributes bytes in total.
func TestAttributes_RoundTrip(t *testing.T) {
	var text []byte
	for _, attribute := range [][2]string{
		{"k8s.pod.name", "shop-1"},
		{"empty", ""},
		{"a", "x=y\x01,z"},
		{"cut", "kept\x00lost"},
		{"nothing", "\x00lost"},
	} {
		text = AppendAttribute(text, attribute[0], attribute[1])
	}
	o, got := Origin{Attributes: string(text)}, ""
	for name, value := range o.EachAttribute() {
		got += name + "=" + value + ";"
	}
	if want := "k8s.pod.name=shop-1;a=x=y\x01,z;cut=kept;"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if o.Attribute("a") != "x=y\x01,z" || o.Attribute("kept") != "" || (&Origin{}).Attribute("a") != "" {
		t.Error("an attribute is not found by its name alone")
	}
	rest := MaxAttributes - len(text) - len("b\x00\x00")
	if longer := AppendAttribute(text, "b", strings.Repeat("x", rest+1)); len(longer) != len(text) {
		t.Errorf("%d bytes", len(longer))
	}
	if full := AppendAttribute(text, "b", strings.Repeat("x", rest)); len(full) != MaxAttributes {
		t.Errorf("%d bytes, want %d", len(full), MaxAttributes)
	}
}

// Only an origin with attributes loses the fields that identify its process.
func TestOrigin_WithoutInstance(t *testing.T) {
	o := Origin{Service: "shop", Env: "prod", Host: "h", ContainerID: "c", RuntimeID: "r"}
	if got := o.WithoutInstance(); got != o {
		t.Errorf("%+v", got)
	}
	o.Attributes = string(AppendAttribute(nil, "k8s.pod.name", "shop-1"))
	if got, want := o.WithoutInstance(), (Origin{Service: "shop", Env: "prod"}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// The origin is still recognized as one of an OpenTelemetry SDK.
func TestOrigin_ServiceOnly(t *testing.T) {
	o := Origin{
		Service: "shop", Env: "prod", Lang: "go", Version: "1", Host: "h", ContainerID: "c", RuntimeID: "r",
		GitCommitSHA: "g", Attributes: "a", TracerVersion: "otlp-1.2.3", LangVersion: "1",
	}
	want := Origin{Service: "shop", Env: "prod", Lang: "go", TracerVersion: "otlp-"}
	if got := o.ServiceOnly(); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	o.TracerVersion, want.TracerVersion = "1.2.3", ""
	if got := o.ServiceOnly(); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}
