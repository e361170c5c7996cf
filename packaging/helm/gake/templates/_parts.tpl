{{- define "gake.metadata" -}}
name: {{ .name }}
namespace: {{ .root.Release.Namespace }}
labels:
  app.kubernetes.io/part-of: gake
{{- end }}

{{- define "gake.environment" -}}
- name: GAKE_FLEET_TOKEN
  valueFrom:
    secretKeyRef: { name: gake-fleet, key: token }
- name: NATS_TOKEN
  valueFrom:
    secretKeyRef: { name: gake-fleet, key: nats }
- name: GAKE_NATS
  value: nats://$(NATS_TOKEN)@gake-nats.{{ .Release.Namespace }}.svc:4222
{{- end }}

{{- define "gake.resources" -}}
requests: { cpu: {{ .cpu | quote }}, memory: {{ .memory | quote }} }
limits: { cpu: {{ .cpu | quote }}, memory: {{ .memory | quote }} }
{{- end }}

{{- define "gake.pod-security" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
seccompProfile:
  type: RuntimeDefault
# Allows more connections to one target.
sysctls:
  - name: net.ipv4.ip_local_port_range
    value: "1024 65535"
{{- end }}

{{- define "gake.confined" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}
