// part of modules/mapped
export function boom() { throw new Error("mapped"); }
//# sourceMappingURL=data:application/json;base64,eyJ2ZXJzaW9uIjozLCJzb3VyY2VzIjpbInNyYy9ib29tLmpzIl0sIm5hbWVzIjpbXSwibWFwcGluZ3MiOiI7QUFNRSJ9
