// Cells as one custom layer of the map: a texture of counts on the mesh. A million cells cost no more
// than a hundred, and another look (fade, dark, difference) is a uniform, not a new picture.

const VERTEX = `#version 300 es
uniform mat4 u_matrix;
in vec2 a_place;
in vec2 a_cell;
out vec2 v_cell;
void main() {
  v_cell = a_cell;
  gl_Position = u_matrix * vec4(a_place, 0.0, 1.0);
}`;

const FRAGMENT = `#version 300 es
precision highp float;
precision highp sampler2D;
uniform sampler2D u_cells;   // the value; how far it may be off, and below 0 if it may be empty
uniform vec3 u_ramp[9];
uniform vec3 u_paper;
uniform vec3 u_ink;
uniform float u_domain;
uniform float u_block;
uniform bool u_fade;
uniform bool u_marks;
uniform bool u_difference;
uniform bool u_clear;        // fade into what is below, not into paper
in vec2 v_cell;
out vec4 colour;
void main() {
  vec2 at = v_cell / u_block;
  ivec2 size = textureSize(u_cells, 0);
  vec2 cell = texelFetch(u_cells, clamp(ivec2(floor(at)), ivec2(0), size - 1), 0).rg;
  bool empty = cell.g < 0.0;
  float r = empty ? -cell.g - 1.0 : cell.g;
  float t = sqrt(min(abs(cell.r) / u_domain, 1.0)) * sign(cell.r);
  float s = (u_difference ? (t + 1.0) / 2.0 : t) * 8.0;
  int low = clamp(int(floor(s)), 0, 7);
  vec3 whole = mix(u_ramp[low], u_ramp[low + 1], clamp(s - float(low), 0.0, 1.0));
  float weight = u_fade ? 1.0 / (1.0 + r * r) : 1.0;
  vec3 shown = u_clear ? whole : mix(u_paper, whole, weight);
  float alpha = u_clear ? 0.12 + 0.7 * weight : 1.0;
  vec2 pixels = 1.0 / max(fwidth(at), vec2(1e-9));
  float side = min(pixels.x, pixels.y);
  vec2 inside = fract(at);
  vec2 edge = min(inside, 1.0 - inside) * pixels;
  float line = (1.0 - smoothstep(0.3, 1.1, min(edge.x, edge.y))) * smoothstep(8.0, 24.0, side);
  shown = mix(shown, u_ink, 0.13 * line);
  if (u_marks && empty && side > 15.0) {
    vec2 p = (inside - 0.5) * pixels;
    float arm = min(abs(p.x - p.y), abs(p.x + p.y)) * 0.7071;
    float mark = (1.0 - smoothstep(0.5, 1.2, arm)) * step(max(abs(p.x), abs(p.y)), 3.2);
    shown = mix(shown, u_ink, 0.5 * mark);
    alpha = max(alpha, 0.6 * mark);
  }
  colour = vec4(shown * alpha, alpha);
}`;

export class GridLayer {
  type = "custom";
  renderingMode = "2d";

  constructor(id, mesh) {
    this.id = id;
    this.mesh = mesh;
    this.side = null; // [from, to] of the map's width, for swiping
  }

  // Blocks of cells: values, how far each may be off (r), and which may be empty.
  show({ block, rows, cols, values }, r, mayBeEmpty, look) {
    const texels = new Float32Array(2 * rows * cols);
    for (let i = 0; i < rows * cols; i++) {
      texels[2 * i] = values[i];
      const off = r ? r[i] : 0;
      texels[2 * i + 1] = mayBeEmpty && mayBeEmpty(i) ? -off - 1 : off;
    }
    this.cells = { block, rows, cols, texels, fresh: true };
    this.look = look;
    this.map?.triggerRepaint();
  }

  restyle(look) {
    this.look = { ...this.look, ...look };
    this.map?.triggerRepaint();
  }

  onAdd(map, gl) {
    this.map = map;
    const program = gl.createProgram();
    for (const [kind, source] of [[gl.VERTEX_SHADER, VERTEX], [gl.FRAGMENT_SHADER, FRAGMENT]]) {
      const shader = gl.createShader(kind);
      gl.shaderSource(shader, source);
      gl.compileShader(shader);
      if (!gl.getShaderParameter(shader, gl.COMPILE_STATUS)) throw new Error(gl.getShaderInfoLog(shader));
      gl.attachShader(program, shader);
    }
    gl.linkProgram(program);
    this.program = program;
    this.at = (name) => gl.getUniformLocation(program, name);
    this.#upload(gl);
    this.texture = gl.createTexture();
    if (this.cells) this.cells.fresh = true;
  }

  // The origin is taken off in doubles: 32-bit floats would lose metres at high zoom.
  #upload(gl) {
    const { mesh } = this;
    const [n, side] = [mesh.n, mesh.n + 1];
    const [x0, y0] = mesh.world;
    this.origin = [x0, y0];
    const corners = new Float32Array(4 * side * side);
    for (let i = 0, at = 0; i < side; i++) {
      for (let j = 0; j < side; j++, at++) {
        const cell = [(j / n) * mesh.cols, (i / n) * mesh.rows];
        corners.set([mesh.x[at] - x0, mesh.y[at] - y0, ...cell], 4 * at);
      }
    }
    const triangles = new Uint16Array(6 * n * n);
    for (let i = 0, at = 0; i < n; i++) {
      for (let j = 0; j < n; j++, at += 6) {
        const a = i * side + j;
        triangles.set([a, a + 1, a + side, a + 1, a + side + 1, a + side], at);
      }
    }
    this.n = triangles.length;
    this.array = gl.createVertexArray();
    gl.bindVertexArray(this.array);
    gl.bindBuffer(gl.ARRAY_BUFFER, gl.createBuffer());
    gl.bufferData(gl.ARRAY_BUFFER, corners, gl.STATIC_DRAW);
    for (const [name, offset] of [["a_place", 0], ["a_cell", 8]]) {
      const where = gl.getAttribLocation(this.program, name);
      gl.enableVertexAttribArray(where);
      gl.vertexAttribPointer(where, 2, gl.FLOAT, false, 16, offset);
    }
    gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, gl.createBuffer());
    gl.bufferData(gl.ELEMENT_ARRAY_BUFFER, triangles, gl.STATIC_DRAW);
    gl.bindVertexArray(null);
  }

  #refresh(gl) {
    const { rows, cols, texels } = this.cells;
    for (const name of ["UNPACK_FLIP_Y_WEBGL", "UNPACK_PREMULTIPLY_ALPHA_WEBGL"]) gl.pixelStorei(gl[name], false);
    gl.texImage2D(gl.TEXTURE_2D, 0, gl.RG32F, cols, rows, 0, gl.RG, gl.FLOAT, texels);
    for (const name of ["TEXTURE_MIN_FILTER", "TEXTURE_MAG_FILTER"])
      gl.texParameteri(gl.TEXTURE_2D, gl[name], gl.NEAREST);
    for (const name of ["TEXTURE_WRAP_S", "TEXTURE_WRAP_T"])
      gl.texParameteri(gl.TEXTURE_2D, gl[name], gl.CLAMP_TO_EDGE);
    this.cells.fresh = false;
  }

  render(gl, { defaultProjectionData }) {
    if (!this.cells) return;
    const { look } = this;
    const matrix = Float64Array.from(defaultProjectionData.mainMatrix);
    const [x0, y0] = this.origin;
    for (let k = 0; k < 4; k++) matrix[12 + k] += matrix[k] * x0 + matrix[4 + k] * y0;
    gl.useProgram(this.program);
    gl.activeTexture(gl.TEXTURE0);
    gl.bindTexture(gl.TEXTURE_2D, this.texture);
    if (this.cells.fresh) this.#refresh(gl);
    gl.uniformMatrix4fv(this.at("u_matrix"), false, new Float32Array(matrix));
    gl.uniform1i(this.at("u_cells"), 0);
    gl.uniform3fv(this.at("u_ramp"), look.ramp.flat());
    gl.uniform3fv(this.at("u_paper"), look.paper);
    gl.uniform3fv(this.at("u_ink"), look.ink);
    gl.uniform1f(this.at("u_domain"), look.domain);
    gl.uniform1f(this.at("u_block"), this.cells.block);
    for (const name of ["fade", "marks", "difference", "clear"])
      gl.uniform1i(this.at(`u_${name}`), look[name] ? 1 : 0);
    gl.disable(gl.DEPTH_TEST);
    gl.disable(gl.STENCIL_TEST);
    gl.disable(gl.CULL_FACE);
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
    if (this.side) {
      const [from, to] = this.side.map((part) => Math.round(part * gl.drawingBufferWidth));
      gl.enable(gl.SCISSOR_TEST);
      gl.scissor(from, 0, Math.max(to - from, 0), gl.drawingBufferHeight);
    }
    gl.bindVertexArray(this.array);
    gl.drawElements(gl.TRIANGLES, this.n, gl.UNSIGNED_SHORT, 0);
    gl.bindVertexArray(null);
    if (this.side) gl.disable(gl.SCISSOR_TEST);
  }
}
