// part of modules/links
order.push('late');
export const three = 3;
